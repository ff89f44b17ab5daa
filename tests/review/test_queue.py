from __future__ import annotations

import time

import numpy as np
import pytest

from fewtags.completion.suggestions import write_suggestions
from fewtags.review import queue as queues
from fewtags.review.filters import Filters
from fewtags.review.index import Index, open_index
from fewtags.review.queue import NO, OPEN, SKIPPED, YES, Queue
from tests.review.fabricate import many_suggestions


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("many")
    table, names = many_suggestions(200_000)
    write_suggestions(table, folder / "s.parquet")
    return open_index(folder / "s.parquet", names, folder / "cache")


def plain_next(queue: Queue, filters: Filters, order: str, count: int) -> list[int]:
    mask = filters.mask(queue.index)
    rows = [int(row) for row in queue.index.orders[order] if mask[row] and queue.state[row] == OPEN]
    return rows[:count]


@pytest.mark.parametrize("order", ["value", "uncertain", "confident", "random"])
def test_next_follows_the_order_whatever_was_answered(index: Index, order: str):
    queue, rng = Queue(index), np.random.default_rng(0)
    filters = Filters(categories=frozenset([3, 5]), low=0.4)
    for step in range(60):
        (row,) = queue.next(filters, order, [OPEN], 1, "a")
        if step % 20 == 0:
            assert row == plain_next(queue, filters, order, 1)[0]
        queue.mark(row, int(rng.choice([YES, NO, SKIPPED])))
        if step % 7 == 0:
            queue.mark(int(rng.integers(len(index))), OPEN)
    assert queue.next(filters, order, [OPEN], 5, "a") == plain_next(queue, filters, order, 5)


def test_an_undone_row_comes_back_in_its_place(index: Index):
    queue = Queue(index)
    first, second = queue.next(Filters(), "confident", [OPEN], 2, "a")
    queue.mark(first, YES)
    assert queue.next(Filters(), "confident", [OPEN], 1, "a") == [second]
    queue.mark(first, OPEN)
    assert queue.next(Filters(), "confident", [OPEN], 1, "a") == [first]


def test_counts_follow_answers_in_every_view(index: Index):
    queue, rng = Queue(index), np.random.default_rng(1)
    views = [Filters(), Filters(low=0.5), Filters(decisions=frozenset(["present"]))]
    for filters in views:
        queue.view(filters)
    for row in rng.integers(0, len(index), 300):
        queue.mark(int(row), int(rng.integers(4)))
    queue.mark_many(rng.integers(0, len(index), 1000), NO)
    for filters in views:
        expected = np.bincount(queue.state[filters.mask(index)], minlength=4)
        assert queue.view(filters).counts.tolist() == expected.tolist()


def test_two_tabs_are_asked_different_questions(index: Index, monkeypatch: pytest.MonkeyPatch):
    queue = Queue(index)
    mine = queue.next(Filters(), "value", [OPEN], 3, "a")
    theirs = queue.next(Filters(), "value", [OPEN], 3, "b")
    assert not set(mine) & set(theirs)
    assert queue.next(Filters(), "value", [OPEN], 3, "a") == mine
    monkeypatch.setattr(queues, "HELD_SECONDS", 0.0)  # a tab that went quiet holds nothing
    assert queue.next(Filters(), "value", [OPEN], 3, "c") == mine


def test_answered_rows_can_be_walked_through(index: Index):
    queue = Queue(index)
    rows = queue.next(Filters(), "confident", [OPEN], 4, "a")
    for row in rows:
        queue.mark(row, SKIPPED)
    assert queue.next(Filters(), "confident", [SKIPPED], 9, "a") == rows
    assert queue.next(Filters(), "confident", [SKIPPED], 9, "a", after=rows[1]) == rows[2:]
    assert queue.next(Filters(low=0.0, high=0.0), "confident", [SKIPPED], 9, "b") == []
    elsewhere = int(np.argmax(index.probability < 0.5))  # a row that the filter does not pass
    assert queue.next(Filters(low=0.5), "random", [OPEN], 1, "c", after=elsewhere) != []


def test_an_order_that_rested_is_the_same_again(index: Index):
    queue = Queue(index)
    before = [queue.next(Filters(), order, [OPEN], 5, "a") for order in index.orders]
    again = [queue.next(Filters(categories=frozenset([1])), order, [OPEN], 5, "a") for order in index.orders]
    assert [queue.next(Filters(), order, [OPEN], 5, "a") for order in index.orders] == before
    assert all(again)


def test_few_views_are_kept(index: Index):
    queue = Queue(index)
    for step in range(queues.VIEWS_KEPT + 5):
        queue.view(Filters(low=step / 100))
    assert len(queue._views) == queues.VIEWS_KEPT


def test_two_hundred_thousand_suggestions_answer_fast(index: Index):
    """10 million: `benchmarks/review_scale.py`. This is a fiftieth of it, with a fifth of the time."""
    queue, rng = Queue(index), np.random.default_rng(2)
    filtering, nexts = [], []
    for step in range(20):
        filters = Filters(frozenset([step]), low=0.2, decisions=frozenset(["unknown"]))
        started = time.perf_counter()
        rows = queue.next(filters, "value", [OPEN], 1, "a")
        filtering.append(time.perf_counter() - started)
        for _ in range(20):
            queue.mark(rows[0], int(rng.integers(1, 4)))
            started = time.perf_counter()
            rows = queue.next(filters, "value", [OPEN], 7, "a")
            nexts.append(time.perf_counter() - started)
    assert np.percentile(nexts, 95) < 0.020
    assert np.percentile(filtering, 95) < 0.100
