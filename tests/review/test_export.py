from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewtags.completion.audit import audit_result
from fewtags.completion.suggestions import write_suggestions
from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.labels.formats import folder
from fewtags.labels.table import LabelTable
from fewtags.recipe import Recipe
from fewtags.review.export import fill_audit, how_to_train, known_table, with_answers, with_completed, write_labels
from fewtags.review.queue import NO, SKIPPED, YES
from tests.review.fabricate import photo_suggestions, suggestion_table, write_photos


def table() -> LabelTable:
    values = np.array([[1, 0, 0], [0, -1, 0]], dtype=np.int8)
    return LabelTable(("1.png", "2.png"), ("a", "b", "c"), values, ("train", "train"))


def test_answers_fill_holes_and_nothing_else():
    answers = [
        ("1.png", "b", YES),
        ("1.png", "c", SKIPPED),
        ("2.png", "a", NO),
        ("1.png", "a", NO),
        ("9.png", "a", YES),
    ]
    merged = with_answers(table(), answers)
    assert merged.values.tolist() == [[1, 1, 0], [-1, -1, 0]]
    assert merged.source.tolist() == [["given", "human", ""], ["human", "given", ""]]


def test_no_answer_changes_nothing():
    merged = with_answers(table(), [])
    assert (merged.values == table().values).all()


def test_people_overrule_what_was_completed(tmp_path: Path):
    completed = with_answers(table(), [])
    source = completed.source.copy()
    source[0, 1], source[1, 2] = "completed", "completed"
    values = completed.values.copy()
    values[0, 1], values[1, 2] = 1, 1
    confidence = np.full(values.shape, np.nan, np.float32)
    confidence[0, 1] = confidence[1, 2] = 0.97
    folder.write(
        LabelTable(table().images, table().categories, values, table().splits, confidence, source), tmp_path
    )
    filled = with_completed(table(), tmp_path / "labels.csv")
    assert filled.values.tolist() == [[1, 1, 0], [0, -1, 1]]
    merged = with_answers(filled, [("1.png", "b", NO)])
    assert merged.values.tolist() == [[1, -1, 0], [0, -1, 1]]
    assert merged.source[0, 1] == "human"
    assert merged.source[1, 2] == "completed"
    assert np.isnan(merged.confidence[0, 1])
    assert with_completed(table(), tmp_path / "elsewhere.csv") is not None


def test_hidden_labels_stay_hidden(tmp_path: Path):
    from tests.conftest import write_colours

    data = open_data(str(write_colours(tmp_path / "data")))
    known = known_table(data.table, Recipe(known=0.3, seed=1))
    train = np.array(data.table.splits) == "train"
    assert 0.1 < known.known[train].mean() < 0.5
    assert known.known[~train].all()
    assert known_table(data.table, Recipe(known=1.0)) is data.table


def test_training_picks_answers_up(tmp_path: Path):
    data = open_data(str(write_photos(tmp_path / "data")))
    merged = with_answers(data.table, [("images/5.png", "apple", YES), ("images/6.png", "apple", NO)])
    file = write_labels(merged, tmp_path / "data" / "reviewed.csv")
    again = open_data(str(file)).table
    assert again.values[5, 2] == 1
    assert again.values[6, 2] == -1
    assert again.source[5, 2] == "human"
    assert how_to_train(data, file) == f"fewtags train {file}"
    assert "put it and reviewed.meta.parquet into" in how_to_train(data, tmp_path / "reviewed.csv")
    assert "fewtags convert scenes" in how_to_train(open_data("scenes:train=2,test=1"), file)
    with pytest.raises(UserError, match=r"write a \.csv"):
        write_labels(merged, tmp_path / "reviewed.txt")


def test_an_audit_gets_its_answers(tmp_path: Path):
    from fewtags.completion.audit import write_audit

    write_audit(suggestion_table(photo_suggestions()), tmp_path / "audit.csv")
    sample = pd.read_csv(tmp_path / "audit.csv")
    sure = sample[sample["decision"] == "present"]
    answers = [(row.image, row.category, YES) for row in sure.itertuples()]
    assert fill_audit(tmp_path / "audit.csv", answers)
    found = audit_result(tmp_path / "audit.csv")["present"]
    assert (found["answered"], found["right"]) == (len(sure), len(sure))
    write_suggestions(suggestion_table(photo_suggestions()), tmp_path / "s.csv")
    assert not fill_audit(tmp_path / "s.csv", answers)
    assert not fill_audit(tmp_path / "s.parquet", answers)
