from __future__ import annotations

from pathlib import Path

import pytest

from fewtags.review.filters import Filters
from fewtags.review.queue import NO, OPEN, STATES, YES
from fewtags.review.session import ChangedError, NoSuchEntryError, Review
from tests.review.fabricate import make_review


@pytest.fixture
def review(tmp_path: Path):
    _, made = make_review(tmp_path)
    yield made
    made.decisions.close()


def first(review: Review, tab: str = "a") -> dict:
    return review.next(Filters(), "confident", [OPEN], 1, tab)[0]


def test_an_item_says_what_the_page_shows(review: Review):
    item = review.item(review.row("images/1.png", "mouse"))
    assert item["question"] == "Is there a mouse here?"
    assert item["known"] == [{"category": "keyboard", "p": item["probability"]}]
    assert [similar["image_number"] for similar in item["similar"]] == [0, 1, 2]
    assert item["state"] == "open"


def test_answers_survive_a_restart(review: Review, tmp_path: Path):
    item = first(review)
    review.answer(item["image"], item["category"], YES, "a", "request-1")
    before = review.progress(Filters())
    review.decisions.close()
    _, again = make_review(tmp_path)
    assert again.progress(Filters()) == before
    assert again.item(item["row"])["state"] == "yes"
    assert again.undo("another tab")[2].tolist() == [item["row"]]
    assert again.progress(Filters())["open"] == before["total"]
    again.decisions.close()


def test_a_second_answer_replaces_the_first_and_says_so(review: Review):
    item = first(review)
    one = review.answer(item["image"], item["category"], YES, "a", "request-1")
    two = review.answer(item["image"], item["category"], NO, "b", "request-2")
    assert (one.previous, two.previous, two.state) == (OPEN, YES, NO)
    again = review.answer(item["image"], item["category"], YES, "a", "request-1")
    assert (again.unit, again.state) == (None, NO)


def test_an_entry_that_is_not_suggested(review: Review):
    for entry in (("images/0.png", "keyboard"), ("gone.png", "mouse"), ("images/0.png", "dog")):
        with pytest.raises(NoSuchEntryError):
            review.answer(*entry, YES, "a", "request-1")
    assert review.decisions.history() == []


@pytest.mark.parametrize(("answer", "level"), [("yes", 0.8), ("no", 0.2)])
def test_bulk_answers_what_was_shown_and_undoes_as_one(review: Review, answer: str, level: float):
    filters = Filters(categories=frozenset([1, 2]))
    rows = review.bulk_rows(filters, answer, level)
    expected = [
        row
        for row in range(len(review.index))
        if review.index.category[row] in (1, 2)
        and (review.index.probability[row] >= level if answer == "yes" else review.index.probability[row] <= level)
    ]
    assert rows.tolist() == expected
    sample = review.bulk_sample(rows, answer)
    unsure = [float(review.index.probability[row]) for row in sample[:6]]
    assert unsure == sorted(unsure, reverse=answer == "no")
    assert review.bulk(filters, answer, level, len(rows), "a", "bulk-request") == len(rows)
    assert all(STATES[review.queue.state[row]] == answer for row in rows)
    assert review.progress(filters)[answer] == len(rows)
    assert len(review.bulk_rows(filters, answer, level)) == 0
    _, kind, undone = review.undo("a")
    assert (kind, sorted(undone)) == ("bulk", rows.tolist())
    assert review.progress(Filters())["open"] == len(review.index)


def test_bulk_leaves_answers_alone_and_notices_a_change(review: Review):
    rows = review.bulk_rows(Filters(), "yes", 0.8)
    item = review.item(int(rows[0]))
    review.answer(item["image"], item["category"], NO, "b", "request-1")
    with pytest.raises(ChangedError, match="look again"):
        review.bulk(Filters(), "yes", 0.8, len(rows), "a", "bulk-request")
    assert review.bulk(Filters(), "yes", 0.8, len(rows) - 1, "a", "bulk-request") == len(rows) - 1
    assert review.item(int(rows[0]))["state"] == "no"


def test_answers_to_an_older_file_are_kept_though_not_shown(review: Review, tmp_path: Path):
    from fewtags.completion.suggestions import write_suggestions
    from tests.review.fabricate import photo_suggestions, suggestion_table

    review.answer("images/9.png", "scissors", YES, "a", "request-1")
    review.decisions.close()
    write_suggestions(suggestion_table(photo_suggestions()[:5]), tmp_path / "completion" / "suggestions.parquet")
    place, fewer = make_review(tmp_path)
    assert fewer.progress(Filters()) == {"total": 5, "open": 5, "yes": 0, "no": 0, "skipped": 0}
    assert place.labels().values[9, 3] == 1
    fewer.decisions.close()
