import numpy as np
import pytest

from fewtags.labels.table import LabelTable


@pytest.fixture
def table():
    values = np.array([[1, 0], [-1, 1], [0, 0]], np.int8)
    confidence = np.array([[np.nan, np.nan], [0.5, np.nan], [np.nan, np.nan]], np.float32)
    source = np.array([["given", ""], ["intra", "given"], ["", ""]], object)
    return LabelTable(("a", "b", "c"), ("dog", "car"), values, ("train", "test", "train"), confidence, source)


def test_known(table):
    assert table.known.tolist() == [[True, False], [True, True], [False, False]]


def test_split_takes_rows_of_everything(table):
    test = table.split("test")
    assert (test.images, test.splits, test.values.tolist()) == (("b",), ("test",), [[-1, 1]])
    assert test.source.tolist() == [["intra", "given"]]
    assert test.confidence[0, 0] == 0.5
    assert len(table.split("train")) == 2


def test_rows_keep_the_asked_order(table):
    assert table.rows(np.array([2, 0])).images == ("c", "a")
    assert len(table.rows(np.array([], int))) == 0


@pytest.mark.parametrize(
    ("values", "splits", "words"),
    [
        (np.zeros((2, 2), np.int8), ("train",) * 3, "values has shape"),
        (np.zeros((3, 2), np.int8), ("train",) * 2, "2 splits for 3 images"),
        (np.full((3, 2), 2, np.int8), ("train",) * 3, "must be int8"),
        (np.zeros((3, 2), np.int64), ("train",) * 3, "must be int8"),
    ],
)
def test_a_table_that_contradicts_itself_cannot_be_made(values, splits, words):
    with pytest.raises(ValueError, match=words):
        LabelTable(("a", "b", "c"), ("dog", "car"), values, splits)


def test_completed_labels_do_not_judge():
    values = np.array([[1, -1, 1], [0, 1, -1]], np.int8)
    source = np.array([["given", "completed", "human"], ["", "completed", "given"]], object)
    table = LabelTable(("a", "b"), ("x", "y", "z"), values, ("test", "test"), source=source)
    assert table.without_completed().values.tolist() == [[1, 0, 1], [0, 0, -1]]
    without_source = LabelTable(("a", "b"), ("x", "y", "z"), values, ("test", "test"))
    assert without_source.without_completed() is without_source
