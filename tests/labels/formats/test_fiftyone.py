import json
from dataclasses import replace

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import fiftyone
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text


def put(file, labels, classes=("dog", "cat")):
    named = {} if classes is None else {"classes": list(classes)}
    return text(file, json.dumps(named | {"labels": labels}))


@pytest.fixture
def root(tmp_path):
    pictures(tmp_path, ["data/a.jpg", "data/b/c d.png"])
    put(tmp_path / "labels.json", {"a": [0, {"label": 1, "confidence": 0.75}], "b/c d": None})
    return tmp_path


def test_every_kind_of_target(root):
    labels = {"a": ["cat", {"label": "dog", "attributes": {"source": "human"}}], "b/c d": 0}
    put(root / "labels.json", labels)
    table, _, notes = fiftyone.read(root, seed=2)
    assert table.images == ("data/a.jpg", "data/b/c d.png")
    assert table.values.tolist() == [[1, 1], [1, 0]]
    assert table.source.tolist() == [["human", "given"], ["given", ""]]
    assert notes == ("labels.json has no split: a seeded 80/20 split (seed 2)",)


def test_a_label_with_a_confidence_is_a_models(root):
    table = fiftyone.read(root).table
    assert table.values.tolist() == [[1, 1], [0, 0]]
    assert table.source.tolist() == [["given", "completed"], ["", ""]]
    assert table.confidence[0, 1] == 0.75


def test_names_without_classes(root):
    put(root / "labels.json", {"a": ["zebra", "dog"], "b/c d": "cat"}, classes=None)
    table = fiftyone.read(root).table
    assert table.categories == ("cat", "dog", "zebra")
    assert table.values.tolist() == [[0, 1, 1], [1, 0, 0]]


def test_absent_is_a_file_of_its_own(root):
    put(root / "absent.json", {"b/c d": [0]})
    assert fiftyone.read(root).table.values.tolist() == [[1, 1], [-1, 0]]


def test_images_without_a_label_are_images_too(root):
    put(root / "labels.json", {"b/c d": [0]})
    table = fiftyone.read(root).table
    assert (table.images, table.values.tolist()) == (("data/b/c d.png", "data/a.jpg"), [[1, 0], [0, 0]])


@pytest.mark.parametrize("test_part", ["test", "validation"])
def test_splits_are_folders(tmp_path, test_part):
    for part in ("train", test_part):
        pictures(tmp_path, [f"{part}/data/a.jpg"])
        put(tmp_path / part / "labels.json", {"a": [1]})
    table, root, _ = fiftyone.read(tmp_path)
    assert table.images == ("train/data/a.jpg", f"{test_part}/data/a.jpg")
    assert (table.splits, root) == (("train", "test"), tmp_path)
    put(tmp_path / test_part / "labels.json", {"a": [1]}, classes=("cat", "dog"))
    with pytest.raises(
        UserError, match=rf"{test_part}/labels.json: its classes are not those of .*train/labels.json"
    ):
        fiftyone.read(tmp_path)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"a": ["dgo", "dgo"], "b/c d": ["dgo"]}, r"'dgo' is not among the classes \(3 times, first in 'a'\)"),
        ({"a": [2]}, "'a': 2 is neither a name nor a number of the 2 classes"),
        ({"a": [None]}, "'a': None is neither a name"),
        ({"a": [{"label": 0, "confidence": "high"}]}, "'a': the confidence 'high' of 'dog' is not a number"),
        ({"z": [0]}, "'z': there is no such image in .*data"),
        ({"../a": [0]}, "'../a': there is no such image"),
    ],
)
def test_labels_that_cannot_be_read(root, labels, words):
    put(root / "labels.json", labels)
    with pytest.raises(UserError, match=words):
        fiftyone.read(root)


def test_other_problems(root):
    put(root / "absent.json", {"a": [0]})
    with pytest.raises(UserError, match=r"'a': 'dog' is in labels.json and in absent.json"):
        fiftyone.read(root)
    pictures(root, ["data/a.png"])
    with pytest.raises(UserError, match=r"'a': is it a.jpg or a.png\? Rename one"):
        fiftyone.read(root)
    text(root / "labels.json", '["dog"]')
    with pytest.raises(UserError, match="not FiftyOne's classifications: it needs 'labels'"):
        fiftyone.read(root)
    text(root / "labels.json", '{"classes": "dog", "labels": {}}')
    with pytest.raises(UserError, match="'classes' is not a list of names"):
        fiftyone.read(root)
    (root / "labels.json").unlink()
    with pytest.raises(UserError, match=r"there is no labels.json, nor one in train/ or test/"):
        fiftyone.read(root)


def a_table():
    values = np.array([[1, -1], [0, 0]], np.int8)
    return LabelTable(("train/data/a.jpg", "train/data/b.jpg"), ("dog", "cat"), values, ("train", "train"))


def test_what_is_written(tmp_path):
    source = np.array([["completed", "given"], ["", ""]], dtype=object)
    confidence = np.array([[0.75, np.nan], [np.nan, np.nan]], np.float32)
    fiftyone.write(replace(a_table(), source=source, confidence=confidence), tmp_path)
    made = json.loads((tmp_path / "train/labels.json").read_text())
    target = {"label": 0, "confidence": 0.75, "attributes": {"source": "completed"}}
    assert made == {"classes": ["dog", "cat"], "labels": {"a": [target], "b": None}}
    assert json.loads((tmp_path / "train/absent.json").read_text())["labels"] == {"a": [1], "b": None}
    assert not (tmp_path / "test").exists()


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match=r"image \(without its ending\) 'train/data/a' is there twice"):
        fiftyone.write(replace(a_table(), images=("train/data/a.jpg", "train/data/a.png")), tmp_path)
    with pytest.raises(UserError, match="category 'dog' is there twice"):
        fiftyone.write(replace(a_table(), categories=("dog", "dog")), tmp_path)
    assert not list(tmp_path.iterdir())
