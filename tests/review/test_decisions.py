from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from fewtags.errors import UserError
from fewtags.review.decisions import Answer, Decisions, standing
from fewtags.review.queue import NO, OPEN, SKIPPED, YES


@pytest.fixture
def decisions(tmp_path: Path):
    opened = Decisions(tmp_path / "review.sqlite")
    yield opened
    opened.close()


def give(
    decisions: Decisions, answer: int, tab: str = "a", request: str = "", entry: tuple = ("1.jpg", "dog")
) -> int:
    return decisions.answer([Answer(*entry, answer, OPEN)], tab, request or os.urandom(8).hex())


def take_back(decisions: Decisions, tab: str, unit: int | None = None) -> list | None:
    """Undo, and what stands now."""
    undone = decisions.undo(tab, unit)
    return None if undone is None else list(decisions.entries_of(undone[0]))


def said(decisions: Decisions) -> dict:
    return {(image, category): answer for image, category, answer in standing(decisions.path)}


def test_the_newest_answer_stands_and_the_older_one_stays(decisions: Decisions):
    give(decisions, YES)
    decisions.answer([Answer("1.jpg", "dog", NO, YES)], "b", "request-2")
    assert said(decisions) == {("1.jpg", "dog"): NO}
    newest, oldest = decisions.history()
    assert (newest.tab, newest.answer, oldest.tab, oldest.answer) == ("b", NO, "a", YES)
    assert newest.time >= oldest.time
    rows = sqlite3.connect(decisions.path).execute("SELECT answer, previous FROM answers ORDER BY unit").fetchall()
    assert rows == [(YES, OPEN), (NO, YES)]


def test_a_request_sent_twice_counts_once(decisions: Decisions):
    assert give(decisions, YES, request="the-same-one") is not None
    assert give(decisions, NO, request="the-same-one") is None
    assert said(decisions) == {("1.jpg", "dog"): YES}


def test_undo_brings_back_what_stood_before(decisions: Decisions):
    give(decisions, YES)
    give(decisions, SKIPPED)
    assert take_back(decisions, "a") == [("1.jpg", "dog", YES)]
    assert take_back(decisions, "a") == [("1.jpg", "dog", OPEN)]
    assert decisions.undo("a") is None
    assert said(decisions) == {}
    assert len(decisions.history()) == 2  # nothing is deleted


def test_undoing_an_answer_that_another_tab_replaced_leaves_theirs(decisions: Decisions):
    give(decisions, YES, "a")
    give(decisions, NO, "b")
    assert take_back(decisions, "a") == [("1.jpg", "dog", NO)]
    assert take_back(decisions, "b") == [("1.jpg", "dog", OPEN)]


def test_a_tab_does_not_undo_what_another_just_answered(decisions: Decisions):
    unit = give(decisions, YES, "a")
    assert decisions.undo("b") is None
    assert decisions.undo("b", unit)[0] == unit  # unless it is named
    assert decisions.undo("b", unit) is None


def test_undo_goes_on_after_a_restart(tmp_path: Path):
    for answer in (YES, NO):
        before = Decisions(tmp_path / "review.sqlite")
        give(before, answer, "old tab", entry=(f"{answer}.jpg", "dog"))
        before.close()
    after = Decisions(tmp_path / "review.sqlite")
    give(after, YES, "new tab", entry=("9.jpg", "dog"))
    undone = [take_back(after, "new tab")[0][0] for _ in range(3)]
    assert undone == ["9.jpg", f"{NO}.jpg", f"{YES}.jpg"]
    after.close()


def test_a_bulk_is_undone_as_one(decisions: Decisions):
    give(decisions, NO, entry=("0.jpg", "dog"))
    many = [Answer(f"{number}.jpg", "dog", YES, OPEN) for number in range(1000)]
    decisions.answer(many, "a", "bulk-request", "bulk")
    assert sum(answer == YES for answer in said(decisions).values()) == 1000
    unit, kind = decisions.undo("a")
    assert (kind, len(list(decisions.entries_of(unit)))) == ("bulk", 1000)
    assert said(decisions) == {("0.jpg", "dog"): NO}
    assert decisions.history()[0].entries == 1000


def test_a_failed_write_leaves_nothing_behind(decisions: Decisions):
    twice = [Answer("new.jpg", "new", YES, OPEN)] * 2
    with pytest.raises(sqlite3.IntegrityError):
        decisions.answer(twice, "a", "request-1")
    assert decisions.history() == []
    give(decisions, YES, entry=("new.jpg", "new"))  # its name is not taken for known
    assert said(decisions) == {("new.jpg", "new"): YES}


def test_many_threads_at_once(decisions: Decisions):
    def work(tab: int) -> None:
        for number in range(25):
            give(decisions, YES, f"tab {tab}", entry=(f"{number}.jpg", f"category {tab}"))

    threads = [threading.Thread(target=work, args=(tab,)) for tab in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said(decisions)) == 100


def test_nothing_is_lost_on_kill_9(tmp_path: Path):
    """A process answers and says so; it is killed in the middle. All it said is there, and the file is whole."""
    code = f"""
        from pathlib import Path
        from fewtags.review.decisions import Answer, Decisions
        decisions = Decisions(Path({str(tmp_path / "review.sqlite")!r}))
        for number in range(100000):
            decisions.answer([Answer(f"{{number}}.jpg", "dog", 1, 0)], "a", f"request {{number}}")
            print(number, flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    heard = [int(process.stdout.readline()) for _ in range(30)]
    os.kill(process.pid, signal.SIGKILL)
    heard += [int(line) for line in process.stdout.read().split()]
    process.wait()
    after = Decisions(tmp_path / "review.sqlite")  # and the lock of the dead is free
    assert {f"{number}.jpg" for number in heard} <= {image for image, _ in said(after)}
    assert sqlite3.connect(after.path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    after.close()


def test_answers_are_synced_to_disk(decisions: Decisions):
    assert decisions._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert decisions._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_only_one_server_answers_into_a_file(decisions: Decisions):
    with pytest.raises(UserError, match="another `fewtags review` answers into this file"):
        Decisions(decisions.path)


def test_a_file_that_is_something_else(tmp_path: Path):
    (tmp_path / "notes.sqlite").write_text("these are notes, not a database, and quite long " * 20)
    with pytest.raises(UserError, match="not a file of answers"):
        Decisions(tmp_path / "notes.sqlite")
