import json
from dataclasses import replace

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import visual_genome
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text


@pytest.fixture
def root(tmp_path):
    index = {"1.jpg": [0, 199], "2.jpg": [], "3.jpg": [5, 200, 499], "unlisted.jpg": [1]}
    text(tmp_path / "vg_category_500_labels_index.json", json.dumps(index))
    text(tmp_path / "train_list_500.txt", "1.jpg\n2.jpg\n")
    text(tmp_path / "test_list_500.txt", "3.jpg")
    pictures(tmp_path, ["VG_100K/1.jpg", "VG_100K_2/2.jpg", "VG_100K_2/3.jpg"])
    return tmp_path


def test_reads_the_first_200_categories_from_both_halves(root):
    table, _, notes = visual_genome.read(root)
    assert table.images == ("VG_100K/1.jpg", "VG_100K_2/2.jpg", "VG_100K_2/3.jpg")
    assert table.splits == ("train", "train", "test")
    assert table.values.shape == (3, 200)
    assert [row.nonzero()[0].tolist() for row in table.values == 1] == [[0, 199], [], [5]]
    assert (table.values != 0).all()
    assert table.categories[7] == "category 7"
    assert "the categories are numbered" in notes[0]


def test_the_200_index_comes_first(root):
    index = {"1.jpg": [3], "2.jpg": [3], "3.jpg": [3]}
    text(root / "vg_category_200_labels_index.json", json.dumps(index))
    assert (visual_genome.read(root).table.values[:, 3] == 1).all()


def test_names(root):
    text(root / "categories.txt", "\n".join(f"thing {n}" for n in range(500)))
    table, _, notes = visual_genome.read(root)
    assert (table.categories[199], len(table.categories), notes) == ("thing 199", 200, ())


@pytest.mark.parametrize(
    ("names", "words"), [("a\nb", "2 names, VG-200 has 200"), ("a\nb\na", "line 3: 'a' is already on line 1")]
)
def test_bad_names(root, names, words):
    text(root / "categories.txt", names)
    with pytest.raises(UserError, match=words):
        visual_genome.read(root)


def test_no_index(tmp_path):
    with pytest.raises(UserError, match="no VG-200 label index: looked for"):
        visual_genome.read(tmp_path)


def test_no_list(root):
    (root / "test_list_500.txt").unlink()
    with pytest.raises(UserError, match=r"test_list_500.txt: there is no such file"):
        visual_genome.read(root)


def test_listed_image_without_labels_or_file(root):
    text(root / "test_list_500.txt", "4.jpg")
    with pytest.raises(UserError, match=r"no entry for the listed image 4.jpg"):
        visual_genome.read(root)
    text(root / "test_list_500.txt", "unlisted.jpg")
    with pytest.raises(UserError, match=r"image unlisted.jpg is missing"):
        visual_genome.read(root)


def test_labels_that_are_not_numbers(root):
    text(root / "vg_category_500_labels_index.json", json.dumps({"1.jpg": ["dog"], "2.jpg": [-1], "3.jpg": []}))
    with pytest.raises(UserError, match="not a list of category numbers"):
        visual_genome.read(root)


# Writing


def a_table():
    values = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (3, 200))
    images = ("VG_100K_2/9.jpg", "images/VG_100K/a é.jpg", "VG_100K/2.jpg")
    return LabelTable(images, tuple(f"thing {n}" for n in range(200)), values, ("train", "train", "test"))


def test_round_trip(tmp_path):
    table = a_table()
    visual_genome.write(table, tmp_path)
    pictures(tmp_path, table.images)
    read = visual_genome.read(tmp_path).table
    assert (read.images, read.categories, read.splits) == (table.images, table.categories, table.splits)
    assert (read.values == table.values).all()


def test_unknown_cannot_be_written(tmp_path):
    table = a_table()
    table.values[0, :3] = 0
    words = "VG-200 cannot say that a label is unknown: 3 entries are; write a folder or openimages instead"
    with pytest.raises(UserError, match=words):
        visual_genome.write(table, tmp_path)


def test_fewer_categories_cannot_be_written(tmp_path):
    table = a_table()
    with pytest.raises(UserError, match="VG-200 has 200 categories, the table 199: write a folder"):
        visual_genome.write(replace(table, categories=table.categories[1:], values=table.values[:, 1:]), tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"images": ("1.jpg", "VG_100K/2.jpg", "VG_100K/3.jpg")},
            r"train image '1.jpg' is not named like \(VG_100K\|.*\)/NAME;",
        ),
        (
            {"images": ("VG_100K/1.jpg", "VG_100K_2/1.jpg", "VG_100K/3.jpg")},
            r"image name '1.jpg' is there twice",
        ),
        ({"splits": ("train",) * 3}, "there is no test image"),
        ({"categories": ("thing 1", *a_table().categories[1:])}, "category 'thing 1' is there twice"),
    ],
)
def test_what_cannot_be_written(tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        visual_genome.write(replace(a_table(), **changes), tmp_path)
    assert not list(tmp_path.iterdir())
