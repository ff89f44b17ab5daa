from dataclasses import replace

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import open_images
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text

HEADER = "ImageID,Source,LabelName,Confidence\n"
TRAIN = "oidv6-train-annotations-human-imagelabels.csv"
VALIDATION = "annotations/validation-annotations-human-imagelabels.csv"


@pytest.fixture
def root(tmp_path):
    text(tmp_path / "class-descriptions.csv", "/m/1,Dog\n/m/2,Car\n/m/3,Bat\n/m/4,Bat\n/m/5,Never verified\n")
    lines = "aa,verification,/m/1,1\naa,verification,/m/2,0\naa,crowd,/m/1,1\n"
    lines += "zz,verification,/m/1,1\nbb,verification,/m/99,1\n"
    text(tmp_path / TRAIN, HEADER + lines)
    text(tmp_path / VALIDATION, HEADER + "cc,verification,/m/4,1\ncc,verification,/m/3,0\n")
    pictures(tmp_path, ["train/aa.jpg", "train/bb.jpg", "validation/cc.jpg"])
    return tmp_path


def test_missing_is_unknown_and_images_at_hand_count(root):
    table, _, notes = open_images.read(root)
    assert table.images == ("train/aa.jpg", "train/bb.jpg", "validation/cc.jpg")
    assert table.categories == ("Dog", "Car", "Bat (/m/3)", "Bat (/m/4)")
    assert table.values.tolist() == [[1, -1, 0, 0], [0, 0, 0, 0], [0, 0, -1, 1]]
    assert table.splits == ("train", "train", "test")
    assert notes == ("no test/ folder: the validation images are the test images",)


def test_test_folder_goes_before_validation(root):
    pictures(root, ["test/dd.jpg"])
    text(root / "test-annotations-human-imagelabels.csv", HEADER + "dd,verification,/m/2,1\n")
    table, _, notes = open_images.read(root)
    assert table.images[2:] == ("test/dd.jpg",)
    assert notes == ("validation/ is not used: test/ is there",)


def test_names_file_with_a_header(root):
    text(root / "class-descriptions.csv", "LabelName,DisplayName\n/m/1,Dog\n/m/2,Car\n")
    assert open_images.read(root).table.categories == ("Dog", "Car")


def test_machine_labels_are_refused(root):
    text(root / TRAIN, HEADER + "zz,machine,/m/1,0.3\naa,machine,/m/1,0.7\n")
    with pytest.raises(UserError, match=r"line 3, column 'Confidence': '0.7' is not 1 or 0"):
        open_images.read(root)


def test_contradiction(root):
    text(root / TRAIN, HEADER + "aa,verification,/m/1,1\naa,crowd,/m/1,0\n")
    with pytest.raises(UserError, match="line 3: contradicts an earlier line"):
        open_images.read(root)


@pytest.mark.parametrize("content", ["ImageID,LabelName\naa,/m/1\n", ""])
def test_other_columns(root, content):
    text(root / TRAIN, content)
    with pytest.raises(UserError, match="not a UTF-8 CSV file with the columns ImageID, LabelName, Confidence"):
        open_images.read(root)


def test_label_file_missing_or_twice(root):
    text(root / "other-train-annotations-human-imagelabels.csv", HEADER)
    with pytest.raises(UserError, match=r"there are several \*train-annotations"):
        open_images.read(root)
    (root / "class-descriptions.csv").unlink()
    with pytest.raises(UserError, match=r"there is no \*class-descriptions"):
        open_images.read(root)


def test_bad_names_file(root):
    text(root / "class-descriptions.csv", "/m/1,Dog\n/m/2\n")
    with pytest.raises(UserError, match="line 2: not `label id,name`"):
        open_images.read(root)


def test_no_images(root):
    (root / "validation/cc.jpg").unlink()
    with pytest.raises(UserError, match="validation: there are no images"):
        open_images.read(root)


def test_no_label_at_all(root):
    text(root / "class-descriptions.csv", "/m/77,Dog\n")
    with pytest.raises(UserError, match="no image has a human-verified label"):
        open_images.read(root)


# Writing


def a_table(part="test"):
    values = np.array([[1, 0, -1], [0, 0, 0], [-1, 1, 0]], np.int8)
    images = ("train/a, é.jpg", "train/b.PNG", f"{part}/c.jpg")
    return LabelTable(images, ("dog", 'a "quoted", name', "straße"), values, ("train", "train", "test"))


@pytest.mark.parametrize("part", ["test", "validation"])
def test_round_trip(tmp_path, part):
    table = a_table(part)
    open_images.write(table, tmp_path)
    pictures(tmp_path, table.images)
    read = open_images.read(tmp_path).table
    assert (read.images, read.categories, read.splits) == (table.images, table.categories, table.splits)
    assert (read.values == table.values).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"images": ("a.jpg", "train/b.jpg", "test/c.jpg")},
            r"train image 'a.jpg' is not named like train/NAME\.\(jpg\|jpeg\|png\);",
        ),
        ({"images": ("train/a.jpg", "train/b.jpg", "test/a.jpg")}, "image id 'a' is there twice"),
        ({"splits": ("train",) * 3}, "there is no test image"),
        ({"categories": ("dog", "dog", "car")}, "category 'dog' is there twice"),
        ({"categories": ("dog", " ", "car")}, "category ' ' is blank"),
        ({"values": np.array([[1, 0, 0]] * 3, np.int8)}, "no label of category 'straße' is known"),
    ],
)
def test_what_cannot_be_written(tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        open_images.write(replace(a_table(), **changes), tmp_path)
    assert not list(tmp_path.iterdir())


def test_round_trip_with_nothing_known_in_a_split(tmp_path):
    values = np.array([[1, 1, -1], [0, 0, 0], [0, 0, 0]], np.int8)
    table = replace(a_table(), values=values)
    open_images.write(table, tmp_path)
    pictures(tmp_path, table.images)
    assert (open_images.read(tmp_path).table.values == values).all()
