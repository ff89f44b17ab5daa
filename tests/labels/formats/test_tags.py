from dataclasses import replace

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import tags
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text


@pytest.fixture
def lists(tmp_path):
    pictures(tmp_path, ["a.jpg", "b, c.jpg", "d.jpg"])
    text(tmp_path / "names.txt", "dog\nhot dog\ncar\n")
    text(tmp_path / "train.txt", "a.jpg, 0 2\nb, c.jpg,\n")
    text(tmp_path / "test.txt", "d.jpg, 1 1\n")
    return tmp_path


@pytest.fixture
def folder(tmp_path):
    pictures(tmp_path, ["x/a.jpg", "x/b.png", "c.jpg"])
    text(tmp_path / "x/a.txt", "dog\nhot dog\n\ndog\n")
    text(tmp_path / "x/b.png.txt", "car\n")
    text(tmp_path / "c.txt", "")
    return tmp_path


def test_lists(lists):
    table, root, notes = tags.read(lists)
    assert root == lists
    assert table.images == ("a.jpg", "b, c.jpg", "d.jpg")
    assert table.categories == ("dog", "hot dog", "car")
    assert table.values.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert table.splits == ("train", "train", "test")
    assert notes == ("tags only: everything that is not tagged is unknown",)


@pytest.mark.parametrize("name", ["tags.txt", "mine.txt"])
def test_one_list_is_split_by_the_seed(lists, name):
    (lists / "test.txt").unlink()
    (lists / "train.txt").rename(lists / name)
    loaded = tags.read(lists / name if name == "mine.txt" else lists, seed=4)
    assert len(loaded.table) == 2
    assert loaded.notes[1] == "tags bring no split: a seeded 80/20 split (seed 4)"


def test_list_problems_are_told_together(lists):
    text(lists / "train.txt", "a.jpg, 0 3 x\nnothing\nd.jpg, 0\n")
    with pytest.raises(UserError) as caught:
        tags.read(lists)
    message = str(caught.value)
    assert "train.txt line 1: unknown category 3, x; names.txt has 3 names" in message
    assert "train.txt line 2: not `file, number number ...`" in message
    assert "d.jpg is listed twice" in message


def test_list_with_missing_image_or_names(lists):
    (lists / "d.jpg").unlink()
    with pytest.raises(UserError, match=r"d.jpg is missing"):
        tags.read(lists)
    (lists / "names.txt").unlink()
    with pytest.raises(UserError, match=r"names.txt: there is no such file"):
        tags.read(lists)


def test_folder_of_tags(folder):
    table = tags.read(folder).table
    assert table.categories == ("car", "dog", "hot dog")
    rows = dict(zip(table.images, table.values.tolist(), strict=True))
    assert rows == {"x/a.jpg": [0, 1, 1], "x/b.png": [1, 0, 0], "c.jpg": [0, 0, 0]}


def test_names_settle_the_categories(folder):
    text(folder / "names.txt", "hot dog\ncar\ndog\nsheep\n")
    assert tags.read(folder).table.categories == ("hot dog", "car", "dog", "sheep")
    text(folder / "names.txt", "car\ndog\n")
    with pytest.raises(UserError, match=r"tags of x/a.jpg: unknown category 'hot dog'; it is not in names.txt"):
        tags.read(folder)


def test_tags_without_an_image(folder):
    text(folder / "x/z.txt", "dog")
    with pytest.raises(UserError, match=r"z.txt has no image beside it"):
        tags.read(folder)


def test_nothing_to_read(tmp_path):
    with pytest.raises(UserError, match="there is no such file or folder"):
        tags.read(tmp_path / "none")
    with pytest.raises(UserError, match="there are no images, and no lists"):
        tags.read(tmp_path)
    pictures(tmp_path, ["a.jpg"])
    with pytest.raises(UserError, match="no image has a text file with tags"):
        tags.read(tmp_path)


# Writing


def a_table():
    values = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.int8)
    return LabelTable(
        ("z, 1.jpg", "b/é.png", "c.jpg"), ("dog", "hot dog", "7"), values, ("train", "train", "test")
    )


def test_round_trip(tmp_path):
    table = a_table()
    tags.write(table, tmp_path)
    pictures(tmp_path, table.images)
    read = tags.read(tmp_path).table
    assert (read.images, read.categories, read.splits) == (table.images, table.categories, table.splits)
    assert (read.values == table.values).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"values": np.array([[1, -1, 1], [0, 1, 1], [1, 1, 1]], np.int8)},
            "tags cannot say that a label is absent: 1 entry is; write a folder or openimages instead",
        ),
        ({"images": ("a.jpg", " b.jpg", "c.jpg")}, "train image ' b.jpg' has blanks around it"),
        ({"splits": ("train",) * 3}, "there is no test image"),
        ({"categories": ("dog", "a\nb", "car")}, "is several lines; rename it"),
    ],
)
def test_what_cannot_be_written(tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        tags.write(replace(a_table(), **changes), tmp_path)
    assert not list(tmp_path.iterdir())
