import numpy as np
import pandas as pd
import pytest

import fewtags
from fewtags.errors import UserError
from fewtags.evaluation import aligned
from fewtags.labels.table import LabelTable
from fewtags.training.folder import RunFolder
from tests.conftest import write_colours


def test_evaluation_equals_what_training_reported(trained, colours):
    assert fewtags.evaluate(trained, colours)["mAP"] == pytest.approx(
        RunFolder(trained).metrics()["mAP"], abs=0.01
    )


def test_columns_follow_the_model_not_the_file():
    table = LabelTable(("a",), ("blue", "red"), np.array([[1, -1]], np.int8), ("test",))
    found = aligned(table, ["red", "green", "blue"], "data")
    assert found.values.tolist() == [[-1, 0, 1]]


def test_other_categories_are_refused():
    table = LabelTable(("a",), ("cat",), np.array([[1]], np.int8), ("test",))
    with pytest.raises(UserError, match="none of the model's categories"):
        aligned(table, ["red"], "data")


def test_unknown_test_labels_are_left_out(trained, tmp_path):
    data = write_colours(tmp_path / "data", unknown=0.3)
    assert 0 <= fewtags.evaluate(trained, data)["mAP"] <= 100
    table = pd.read_csv(data / "labels.csv", dtype=str)
    table.loc[table["split"] == "test", table.columns[2:]] = ""
    table.to_csv(data / "labels.csv", index=False)
    with pytest.raises(UserError, match="nothing to compare with"):
        fewtags.evaluate(trained, data)


def test_a_missing_split_is_named(trained, tmp_path):
    data = write_colours(tmp_path / "data", test=0)
    with pytest.raises(UserError, match="no image has split 'test'"):
        fewtags.evaluate(trained, data)
