import json

import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import coco_json
from fewtags.labels.formats.entries import count_unknown
from tests.labels.formats.make import pictures, text

CATEGORIES = [{"id": 7, "name": "stop sign"}, {"id": 2, "name": "person"}, {"id": 3, "name": "dog"}]


def content(negatives=None, annotations=((1, 2), (2, 3))):
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b c.jpg"}]
    for image, ids in zip(images, negatives or (), strict=False):
        image["neg_category_ids"] = ids
    return {
        "images": images,
        "annotations": [{"image_id": i, "category_id": c} for i, c in annotations],
        "categories": CATEGORIES,
    }


def put(file, **changes):
    negatives = changes.pop("negatives", None)
    return text(file, json.dumps(content(negatives) | changes))


@pytest.fixture
def file(tmp_path):
    pictures(tmp_path, ["images/a.jpg", "images/b c.jpg"])
    return put(tmp_path / "mine.json")


def test_without_negatives_everything_was_looked_for(file):
    table, root, notes = coco_json.read(file, seed=4)
    assert root == file.parent
    assert table.categories == ("person", "dog", "stop sign")
    assert table.values.tolist() == [[1, -1, -1], [-1, 1, -1]]
    assert table.images == ("images/a.jpg", "images/b c.jpg")
    assert notes[0] == "mine.json has no split: a seeded 80/20 split (seed 4)"
    assert notes[1] == "no image has neg_category_ids: what is not annotated is absent, as in MS-COCO"


@pytest.mark.parametrize(("negatives", "second"), [([[7], []], [0, 1, 0]), ([[7]], [0, 1, 0])])
def test_lvis_keys_say_what_is_absent_and_the_rest_is_unknown(file, negatives, second):
    put(file, negatives=negatives)
    table, _, notes = coco_json.read(file.parent)
    assert table.values.tolist() == [[1, 0, -1], second]
    assert len(notes) == 1


@pytest.mark.parametrize("template", coco_json.FILES)
@pytest.mark.parametrize("test_part", ["test", "val", "valid"])
def test_files_of_each_split(tmp_path, template, test_part):
    for part in ("train", test_part):
        put(tmp_path / template.format(part=part))
        pictures(tmp_path, [f"{part}/a.jpg", f"{part}/b c.jpg"])
    table, _, _ = coco_json.read(tmp_path)
    assert table.images == ("train/a.jpg", "train/b c.jpg", f"{test_part}/a.jpg", f"{test_part}/b c.jpg")
    assert table.splits == ("train", "train", "test", "test")


def problem_of(file, **changes):
    put(file, **changes)
    with pytest.raises(UserError) as caught:
        coco_json.read(file)
    return str(caught.value)


def test_unknown_ids_are_counted(file):
    wrong = [{"image_id": 1, "category_id": 9}] * 3 + [{"image_id": 5, "category_id": 2}]
    message = problem_of(file, annotations=wrong, negatives=[[8], [8]])
    assert "category_id 9 is not among the categories (3 times, first in annotation 1)" in message
    assert "image_id 5 is not among the images (once, first in annotation 4)" in message
    assert "category_id 8 is not among the categories (2 times, first in neg_category_ids of a.jpg)" in message


def test_contradictions_and_repetitions(file):
    assert "a.jpg: category 2 is annotated and in neg_category_ids" in problem_of(file, negatives=[[2]])
    assert "two categories have the same id" in problem_of(file, categories=[*CATEGORIES, {"id": 3, "name": "x"}])
    again = {"id": 1, "file_name": "c.jpg"}
    pictures(file.parent, ["images/c.jpg"])
    assert "two images have the same id" in problem_of(file, images=[*content()["images"], again])
    assert "category 'dog' is there twice" in problem_of(file, categories=[*CATEGORIES, {"id": 4, "name": "dog"}])
    assert "image 'a.jpg' is there twice" in problem_of(
        file, images=[{"id": n, "file_name": "a.jpg"} for n in (1, 2)]
    )


def test_fields_that_are_not_there(file):
    assert "annotations, number 1: no 'category_id'" in problem_of(file, annotations=[{"image_id": 1}])
    assert "images, number 1: no 'file_name'" in problem_of(file, images=["a.jpg"])
    assert "categories, number 1: no 'id'" in problem_of(file, categories=[{"id": [1], "name": "dog"}])


def test_images_that_are_missing_or_outside(file):
    assert "image '../a.jpg' is outside the folder" in problem_of(
        file, images=[{"id": 1, "file_name": "../a.jpg"}]
    )
    assert "image '/a.jpg' is outside" in problem_of(file, images=[{"id": 1, "file_name": "/a.jpg"}])
    (file.parent / "images/a.jpg").unlink()
    assert "a.jpg is missing" in problem_of(file)


def test_which_file(file):
    put(file.parent / "other.json")
    with pytest.raises(UserError, match=r"several JSON files \(mine.json, other.json\): name the one to read"):
        coco_json.read(file.parent)
    with pytest.raises(UserError, match="there is no JSON file"):
        coco_json.read(file.parent / "images")


def test_categories_differ(tmp_path):
    put(tmp_path / "annotations/train.json")
    put(tmp_path / "annotations/val.json", categories=CATEGORIES[1:], annotations=[])
    pictures(tmp_path, ["images/a.jpg", "images/b c.jpg"])
    with pytest.raises(UserError, match=r"val.json: its categories are not those of .*train.json"):
        coco_json.read(tmp_path)


def test_malformed_json(file):
    text(file, '{"images":\n [,]}')
    with pytest.raises(UserError, match=r"mine.json: line 2, column 3: not JSON"):
        coco_json.read(file)


def test_what_is_written(tmp_path):
    from tests.labels.formats.test_round_trips import a_table

    table = a_table("coco")
    coco_json.write(table, tmp_path, sizes=[(n + 1, 2 * n + 1) for n in range(6)])
    made = json.loads((tmp_path / "annotations/instances_test.json").read_text(encoding="utf-8"))
    assert [image["id"] for image in made["images"]] == [5, 6]  # ids are unique across the files
    assert [(image["width"], image["height"]) for image in made["images"]] == [(2, 3), (5, 9)]
    assert made["images"][0]["neg_category_ids"] == [1]
    assert made["images"][0]["not_exhaustive_category_ids"] == []
    assert {"id": 1, "image_id": 5, "category_id": 2, "iscrowd": 0} in made["annotations"]
    assert made["info"]["description"].endswith("Neither: unknown")
    assert [category["id"] for category in made["categories"]] == [1, 2, 3, 4, 5, 6]


def test_unknown_names_once_each():
    from fewtags.errors import Problems

    problems = Problems("here")
    count_unknown([("a", "x"), ("b", "y"), ("b", "z")], ["a"], "{name} is no name", problems)
    assert problems.found == ["'b' is no name (2 times, first in y)"]
