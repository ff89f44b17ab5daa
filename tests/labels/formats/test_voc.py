from dataclasses import replace

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import voc
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text


def objects(*pairs):
    items = "".join(f"<object><name>{n}</name><difficult>{d}</difficult></object>" for n, d in pairs)
    return f"<annotation><filename>x</filename>{items}</annotation>"


@pytest.fixture
def devkit(tmp_path):
    root = tmp_path / "VOCdevkit" / "VOC2007"
    annotations = {
        "000001": objects(("dog", 0), ("person", 1), ("person", 0)),
        "000002": objects(("car", 1), ("car", 1), ("sheep", 0)),
        "000003": objects(("person", 0), ("person", 1)),
    }
    for image, content in annotations.items():
        text(root / "Annotations" / f"{image}.xml", content)
    text(root / "ImageSets/Main/trainval.txt", "000001\n000003\n")
    text(root / "ImageSets/Main/test.txt", "000002\n")
    pictures(root, [f"JPEGImages/{image}.jpg" for image in annotations])
    return root


def present(table, row):
    return {c for c, value in zip(table.categories, table.values[row], strict=True) if value == 1}


def test_reads(devkit):
    table, root, _ = voc.read(devkit)
    assert root == devkit
    assert table.images == ("JPEGImages/000001.jpg", "JPEGImages/000003.jpg", "JPEGImages/000002.jpg")
    assert table.splits == ("train", "train", "test")
    assert len(table.categories) == 20
    assert [present(table, row) for row in range(3)] == [{"dog", "person"}, {"person"}, {"sheep"}]
    car = table.categories.index("car")
    assert table.values[:, car].tolist() == [-1, -1, 0]
    assert (table.values == 0).sum() == 1


def test_difficult_as_absent(devkit):
    table = voc.read(devkit, difficult="absent").table
    assert (table.values == 0).sum() == 0
    assert table.values[2, table.categories.index("car")] == -1


@pytest.mark.parametrize("up", [0, 1, 2])
def test_the_root_may_be_any_of_three_folders(devkit, up):
    path = [devkit, devkit.parent, devkit.parent.parent][up]
    assert voc.read(path).root == devkit


def test_no_devkit(tmp_path):
    with pytest.raises(UserError, match="no Pascal VOC 2007 annotations: looked for"):
        voc.read(tmp_path)


def test_no_test_list(devkit):
    (devkit / "ImageSets/Main/test.txt").unlink()
    with pytest.raises(UserError, match="Unpack both VOCtrainval"):
        voc.read(devkit)


def test_problems_are_told_together(devkit):
    (devkit / "Annotations/000001.xml").unlink()
    text(devkit / "Annotations/000002.xml", "<annotation>")
    text(devkit / "Annotations/000003.xml", objects(("unicorn", 0)))
    with pytest.raises(UserError) as caught:
        voc.read(devkit)
    message = str(caught.value)
    assert "000001.xml: there is no such file" in message
    assert "000002.xml: line 1, column 13: not readable as XML (no element found)" in message
    assert "000003.xml: unknown category 'unicorn'" in message


def test_missing_image(devkit):
    (devkit / "JPEGImages/000002.jpg").unlink()
    with pytest.raises(UserError, match=r"000002.jpg is missing"):
        voc.read(devkit)


# Writing


def a_table():
    values = np.random.default_rng(0).choice(np.array([-1, 0, 1], np.int8), (4, 20))
    images = tuple(f"JPEGImages/{name}.jpg" for name in ("000007", "000001", "b&é", "000002"))
    return LabelTable(images, tuple(voc.CATEGORIES), values, ("train", "train", "train", "test"))


def test_round_trip(tmp_path):
    table = a_table()
    voc.write(table, tmp_path)
    pictures(tmp_path, table.images)
    read = voc.read(tmp_path).table
    assert (read.images, read.categories, read.splits) == (table.images, table.categories, table.splits)
    assert (read.values == table.values).all()


def test_splits_that_are_mixed_come_back_train_first(tmp_path):
    table = replace(a_table(), splits=("test", "train", "test", "train"))
    voc.write(table, tmp_path)
    pictures(tmp_path, table.images)
    read, sorted_rows = voc.read(tmp_path).table, table.rows(np.array([1, 3, 0, 2]))
    assert (read.images, read.splits) == (sorted_rows.images, sorted_rows.splits)
    assert (read.values == sorted_rows.values).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"categories": ("unicorn", *voc.CATEGORIES[1:])}, "Pascal VOC has the 20 categories aeroplane"),
        (
            {"images": ("JPEGImages/a b.jpg", *"bcd")},
            r"train image 'JPEGImages/a b.jpg' is not named like JPEGImages/NAME\.jpg;",
        ),
        ({"images": ("JPEGImages/a.jpg",) * 4}, r"image 'JPEGImages/a.jpg' is there twice"),
        ({"splits": ("test",) * 4}, "there is no train image"),
    ],
)
def test_what_cannot_be_written(tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        voc.write(replace(a_table(), **changes), tmp_path)
    assert not list(tmp_path.iterdir())
