"""A clock that goes backwards: nothing that is kept, continued or ordered may rest on it."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pandas as pd
import pytest

import fewtags
from fewtags.review.decisions import Answer, Decisions, standing
from fewtags.review.index import KEPT
from fewtags.review.queue import NO, OPEN, YES
from fewtags.training.callbacks import EpochFiles
from tests.conftest import TINY
from tests.review.fabricate import photo_suggestions
from tests.review.test_index import indexed
from tests.training.test_run import same_tensors


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock finds it an hour earlier."""
    hours = itertools.count()
    monkeypatch.setattr(time, "time", lambda: 1.7e9 - 3600.0 * next(hours))


def give(decisions: Decisions, image: str, answer: int, tab: str = "tab") -> None:
    decisions.answer([Answer(image, "dog", answer, OPEN)], tab, os.urandom(8).hex())


@pytest.mark.usefixtures("backwards")
def test_the_newest_answer_stands_and_comes_first_in_the_history(tmp_path: Path):
    decisions = Decisions(tmp_path / "review.sqlite")
    for answer in (YES, NO):
        give(decisions, "1.jpg", answer)
    newest, oldest = decisions.history()
    assert newest.time < oldest.time  # the clock did go backwards
    assert (newest.answer, oldest.answer) == (NO, YES)
    assert list(standing(decisions.path)) == [("1.jpg", "dog", NO)]
    decisions.close()


@pytest.mark.usefixtures("backwards")
def test_undo_reaches_what_was_answered_before_the_server_started(tmp_path: Path):
    before = Decisions(tmp_path / "review.sqlite")
    give(before, "1.jpg", YES, "old tab")
    before.close()
    after = Decisions(tmp_path / "review.sqlite")
    give(after, "2.jpg", YES, "another tab")
    undone = after.undo("new tab")
    assert undone is not None
    assert list(after.entries_of(undone[0])) == [("1.jpg", "dog", OPEN)]
    assert after.undo("new tab") is None  # the other tab's answer is not ours to undo
    after.close()


@pytest.mark.usefixtures("backwards")
def test_a_run_is_resumed_to_the_same_result(
    colours: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ended = EpochFiles.on_train_epoch_end

    def interrupt(self: EpochFiles, trainer, module) -> None:
        ended(self, trainer, module)
        if trainer.current_epoch == 1:
            raise InterruptedError("for this test")

    monkeypatch.setattr(EpochFiles, "on_train_epoch_end", interrupt)
    with pytest.raises(InterruptedError):
        fewtags.train(colours, out=tmp_path / "run", method="hst", known=0.5, **TINY)
    monkeypatch.setattr(EpochFiles, "on_train_epoch_end", ended)
    resumed = fewtags.train(colours, out=tmp_path / "run", resume=True)
    assert same_tensors(trained, resumed)
    history = pd.read_csv(resumed / "history.csv")
    assert list(history["epoch"]) == [1, 2, 3]
    assert (history["seconds"] >= 0).all()


def test_an_index_of_suggestions_outlives_older_ones_that_seem_newer(tmp_path: Path):
    """Indexes made before the clock was set back look as if made in the future."""
    for count in range(1, KEPT + 2):
        future = time.time() + 1e6 + count
        os.utime(indexed(tmp_path, photo_suggestions()[:count]).folder, (future, future))
    newest = indexed(tmp_path, photo_suggestions())
    assert newest.folder.is_dir()
    assert len(newest) == len(photo_suggestions())
