import json
from dataclasses import replace

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import coco
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text

CATEGORIES = [{"id": 90, "name": "toothbrush"}, {"id": 1, "name": "person"}, {"id": 13, "name": "stop sign"}]


def instances(part, images, pairs, categories=CATEGORIES):
    return {
        "images": [{"id": image, "file_name": f"COCO_{part}_{image:012}.jpg"} for image in images],
        "annotations": [{"image_id": i, "category_id": c, "iscrowd": 0} for i, c in pairs],
        "categories": categories,
    }


@pytest.fixture
def root(tmp_path):
    for part, images, pairs in (
        ("train2014", [9, 581929, 30], [(9, 1), (9, 90), (9, 1), (30, 13)]),
        ("val2014", [42], [(42, 1)]),
    ):
        content = instances(part, images, pairs)
        text(tmp_path / "annotations" / f"instances_{part}.json", json.dumps(content))
        pictures(tmp_path, [f"{part}/{image['file_name']}" for image in content["images"]])
    return tmp_path


def change(root, **changes):
    file = root / "annotations/instances_train2014.json"
    text(file, json.dumps(json.loads(file.read_text()) | changes))


def test_reads_ids_with_gaps_and_images_without_annotations(root):
    table, image_root, _ = coco.read(root, 2014)
    assert table.categories == ("person", "stop sign", "toothbrush")
    assert table.values.tolist() == [[1, -1, 1], [-1, -1, -1], [-1, 1, -1], [1, -1, -1]]
    assert table.splits == ("train", "train", "train", "test")
    assert table.images[1] == "train2014/COCO_train2014_000000581929.jpg"
    assert (image_root / table.images[3]).is_file()


def test_images_folder_and_flat_annotations(root):
    (root / "images").mkdir()
    for part in ("train2014", "val2014"):
        (root / part).rename(root / "images" / part)
        (root / f"annotations/instances_{part}.json").rename(root / f"instances_{part}.json")
    assert coco.read(root, 2014).table.images[3].startswith("images/val2014/")


def test_the_other_year_is_not_there(root):
    with pytest.raises(
        UserError, match=r"no annotations of COCO train2017: looked for .*instances_train2017.json"
    ):
        coco.read(root, 2017)


def test_unknown_ids(root):
    change(root, annotations=[{"image_id": 5, "category_id": 1}, {"image_id": 9, "category_id": 12}])
    with pytest.raises(UserError) as caught:
        coco.read(root, 2014)
    assert "image_id 5 is not among the images (once, first in annotation 1)" in str(caught.value)
    assert "category_id 12 is not among the categories (once, first in annotation 2)" in str(caught.value)


def test_different_categories(root):
    change(root, categories=[*CATEGORIES, {"id": 2, "name": "car"}])
    with pytest.raises(UserError, match="the categories of the 2014 train and val files differ"):
        coco.read(root, 2014)


def test_not_instances(root):
    text(root / "annotations/instances_train2014.json", "[]")
    with pytest.raises(UserError, match="not a COCO instances file"):
        coco.read(root, 2014)
    text(root / "annotations/instances_train2014.json", '{"images": [,]}')
    with pytest.raises(UserError, match="line 1, column 13: not JSON"):
        coco.read(root, 2014)


def test_missing_image(root):
    (root / "train2014/COCO_train2014_000000000009.jpg").unlink()
    with pytest.raises(UserError, match=r"000000000009.jpg is missing"):
        coco.read(root, 2014)


# Writing


def a_table(year=2014, above=""):
    values = np.array([[1, -1, 1], [-1, -1, -1], [-1, 1, -1]], np.int8)
    images = (f"{above}train{year}/z, é.jpg", f"{above}train{year}/b/a.jpg", f"{above}val{year}/c.jpg")
    return LabelTable(images, ("zebra", "stop sign", "straße"), values, ("train", "train", "test"))


@pytest.mark.parametrize("above", ["", "images/"])
@pytest.mark.parametrize("year", [2014, 2017])
def test_round_trip(tmp_path, year, above):
    table = a_table(year, above)
    coco.write(table, tmp_path, year)
    pictures(tmp_path, table.images)
    read = coco.read(tmp_path, year).table
    assert (read.images, read.categories, read.splits) == (table.images, table.categories, table.splits)
    assert (read.values == table.values).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"values": np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]], np.int8)},
            "COCO cannot say that a label is unknown: 2 entries are; write a folder or openimages instead",
        ),
        ({"images": a_table(2017).images}, r"train image 'train2017/z, é.jpg' is not named like train2014/NAME;"),
        ({"splits": ("train",) * 3}, "there is no test image"),
        ({"categories": ("dog", "dog", "car")}, "category 'dog' is there twice"),
    ],
)
def test_what_cannot_be_written(tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        coco.write(replace(a_table(), **changes), tmp_path)
    assert not list(tmp_path.iterdir())
