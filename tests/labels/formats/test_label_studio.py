import json
from dataclasses import replace

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import label_studio
from fewtags.labels.formats.label_studio_tasks import write
from fewtags.labels.formats.safe_xml import read_xml
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text

NAN = np.nan


def a_table(**changes):
    """Two given labels, one completed, and an image of which nothing is known."""
    values = np.array([[1, -1, 0], [1, 0, 1], [0, 0, 0]], np.int8)
    source = np.array([["given", "given", ""], ["given", "", "completed"], ["", "", ""]], dtype=object)
    confidence = np.array([[NAN, NAN, NAN], [NAN, NAN, 0.75], [NAN, NAN, NAN]], np.float32)
    images = ("images/a b.jpg", "images/é.jpg", "images/c.jpg")
    table = LabelTable(images, ("dog", "cat", "car"), values, ("train", "test", "train"), confidence, source)
    return replace(table, **changes)


@pytest.fixture
def root(tmp_path):
    pictures(tmp_path, a_table().images)
    write(a_table(), tmp_path)
    return tmp_path


def tasks_of(root):
    return json.loads((root / "tasks.json").read_text(encoding="utf-8"))


def choices(**groups):
    """An annotation's results: choices(present=[...], absent=[...])."""
    return [
        {"from_name": name, "to_name": "image", "type": "choices", "value": {"choices": chosen}}
        for name, chosen in groups.items()
    ]


def annotate(root, number, result, **fields):
    tasks = tasks_of(root)
    tasks[number].setdefault("annotations", []).append({"result": result} | fields)
    text(root / "tasks.json", json.dumps(tasks))


# Out


def test_known_labels_are_annotations_and_a_models_are_predictions(root):
    given, completed, nothing = tasks_of(root)
    assert given["data"]["image"] == "images/a b.jpg"
    (annotation,) = given["annotations"]
    assert [(r["from_name"], r["to_name"], r["type"], r["value"]) for r in annotation["result"]] == [
        ("present", "image", "choices", {"choices": ["dog"]}),
        ("absent", "image", "choices", {"choices": ["cat"]}),
    ]
    assert "predictions" not in given
    (prediction,) = completed["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("fewtags", 0.75)
    assert [r["value"]["choices"] for r in prediction["result"]] == [["dog", "car"]]  # the given label too
    assert "annotations" not in completed  # or Label Studio would take the task for finished
    assert set(nothing) == {"data"}


def test_the_interface_lists_every_category_twice(root):
    view = read_xml(root / "config.xml").root
    groups = view.findall("Choices")
    assert [(g.get("name"), g.get("toName"), g.get("choice")) for g in groups] == [
        ("present", "image", "multiple"),
        ("absent", "image", "multiple"),
    ]
    assert [[c.get("value") for c in group] for group in groups] == [["dog", "cat", "car"]] * 2
    assert view.find("Image").attrib == {"name": "image", "value": "$image"}
    assert view.find("Table") is None


def test_suggestions_are_predictions_with_scores(tmp_path):
    suggested = {
        "images/a b.jpg": {"car": (0.25, "unknown")},
        "images/c.jpg": {"dog": (0.9, "present"), "cat": (0.125, "absent"), "car": (0.625, "unknown")},
    }
    write(a_table(), tmp_path, suggested=suggested)
    unlikely, _, task = tasks_of(tmp_path)
    (prediction,) = task["predictions"]
    assert {r["from_name"]: r["value"]["choices"] for r in prediction["result"]} == {
        "present": ["dog", "car"],
        "absent": ["cat"],
    }
    assert prediction["score"] == 0.625  # the least sure of 0.9, 1 - 0.125 and 0.625
    assert list(task["data"]["probabilities"].items()) == [("dog", 0.9), ("car", 0.625), ("cat", 0.125)]
    assert "annotations" in unlikely  # nothing is proposed: an unlikely label stays unchosen
    assert unlikely["data"]["probabilities"] == {"car": 0.25}
    assert read_xml(tmp_path / "config.xml").root.find("Table").get("value") == "$probabilities"


def test_suggestions_never_change_what_is_known(tmp_path):
    write(a_table(), tmp_path, suggested={"images/a b.jpg": {"dog": (0.0, "absent"), "car": (1.0, "present")}})
    (prediction,) = tasks_of(tmp_path)[0]["predictions"]
    assert [r["value"]["choices"] for r in prediction["result"]] == [["dog", "car"], ["cat"]]


@pytest.mark.parametrize("prefix", ["/data/local-files/?d=my%20pets/", "https://example.org/x/"])
def test_a_prefix_makes_addresses_and_images_are_found_again(tmp_path, prefix):
    write(a_table(), tmp_path, prefix)
    pictures(tmp_path, a_table().images)
    assert tasks_of(tmp_path)[1]["data"]["image"] == prefix + "images/%C3%A9.jpg"
    assert label_studio.read(tmp_path).table.images == a_table().images


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(UserError, match="category 'dog' is there twice"):
        write(a_table(categories=("dog", "dog", "car")), tmp_path)


# In: tasks that we wrote


def read_back(root):
    """Values, and sources: all given where the table says nothing of them."""
    table = label_studio.read(root).table
    given = np.where(table.values == 0, "", "given")
    return table.values.tolist(), (given if table.source is None else table.source).tolist()


def test_an_image_without_an_annotation_keeps_what_it_had(root):
    table = label_studio.read(root).table
    assert read_back(root) == (a_table().values.tolist(), a_table().source.tolist())
    assert (table.splits, table.confidence[1, 2]) == (("train", "test", "train"), 0.75)


def test_choices_made_there_come_back_as_human(root):
    annotate(root, 2, choices(present=["car"], absent=["dog"]))
    values, source = read_back(root)
    assert (values[2], source[2]) == ([-1, 0, 1], ["human", "", "human"])
    assert (values[:2], source[:2]) == (a_table().values[:2].tolist(), a_table().source[:2].tolist())


def test_a_confirmed_prediction_is_human_and_one_taken_out_is_unknown(root):
    annotate(root, 1, choices(present=["dog", "car"]))
    assert (read_back(root)[0][1], read_back(root)[1][1]) == ([1, 0, 1], ["given", "", "human"])
    annotate(root, 1, choices(present=["dog"]), updated_at="2026-01-02T00:00:00Z")
    assert (read_back(root)[0][1], read_back(root)[1][1]) == ([1, 0, 0], ["given", "", ""])


def test_a_given_label_changed_by_a_person_is_human_and_one_withdrawn_unknown(root):
    annotate(root, 0, choices(absent=["dog"]), updated_at="2026-01-02T00:00:00Z")
    assert (read_back(root)[0][0], read_back(root)[1][0]) == ([-1, 0, 0], ["human", "", ""])


def test_the_newest_annotation_counts_and_a_skipped_one_does_not(root):
    annotate(root, 2, choices(present=["car"]), updated_at="2026-01-03T00:00:00Z")
    annotate(root, 2, choices(present=["dog"]), updated_at="2026-01-02T00:00:00Z")
    annotate(root, 2, choices(present=["cat"]), updated_at="2026-01-04T00:00:00Z", was_cancelled=True)
    assert read_back(root)[0][2] == [0, 0, 1]


def test_exports_beside_the_tasks_replace_some_of_them(root):
    tasks = tasks_of(root)
    for date, chosen in (("01", ["cat"]), ("02", ["car"])):
        task = tasks[2] | {"id": 9, "annotations": [{"result": choices(present=chosen)}], "predictions": []}
        text(root / f"project-1-at-2026-01-{date}.json", json.dumps([task]))
    table = label_studio.read(root).table
    assert table.images == a_table().images
    assert table.values.tolist() == [[1, -1, 0], [1, 0, 1], [0, 0, 1]]
    assert table.splits == a_table().splits


def test_without_the_interface_the_categories_are_those_found(root):
    (root / "config.xml").unlink()
    table = label_studio.read(root).table
    assert table.categories == ("car", "cat", "dog")
    assert table.values.tolist() == [[0, -1, 1], [1, 0, 1], [0, 0, 0]]


# In: tasks of others


def foreign(root, *tasks):
    return text(root / "project-1.json", json.dumps(list(tasks)))


def a_task(image, result=(), **fields):
    return {"id": 41, "data": {"image": image}, "annotations": [{"id": 5, "result": list(result)}]} | fields


@pytest.mark.parametrize(
    "address",
    [
        "photos/a b.jpg",
        "/data/local-files/?d=somewhere/else/photos/a%20b.jpg",
        "https://example.org/x/photos/a%20b.jpg?token=1",
        "s3://bucket/photos/a b.jpg",
    ],
)
def test_an_image_is_found_by_the_end_of_its_address(tmp_path, address):
    pictures(tmp_path, ["photos/a b.jpg"])
    file = foreign(tmp_path, a_task(address, choices(tags=["dog", "cat"])))
    table, root, notes = label_studio.read(file, seed=6)
    assert (table.images, root) == (("photos/a b.jpg",), tmp_path)
    assert (table.values.tolist(), table.source.tolist()) == ([[1, 1]], [["human", "human"]])
    assert notes == ("project-1.json has no split: a seeded 80/20 split (seed 6)",)


def test_an_uploaded_image_has_letters_before_its_name(tmp_path):
    pictures(tmp_path, ["images/a-b.jpg"])
    foreign(tmp_path, a_task("/data/upload/3/0a1b2c3d-a-b.jpg", choices(tags=["dog"])))
    assert label_studio.read(tmp_path).table.images == ("images/a-b.jpg",)


def test_another_field_may_hold_the_image(tmp_path):
    pictures(tmp_path, ["a.jpg"])
    task = a_task("", choices(tags=["dog"])) | {"data": {"caption": "a dog", "photo": "a.jpg"}}
    foreign(tmp_path, task)
    assert label_studio.read(tmp_path).table.images == ("a.jpg",)


def test_other_results_are_left_out_and_counted(tmp_path):
    pictures(tmp_path, ["a.jpg"])
    boxes = [{"type": "rectanglelabels", "value": {"rectanglelabels": ["cat"]}}] * 2
    foreign(tmp_path, a_task("a.jpg", [*boxes, *choices(tags=["dog"])]))
    table, _, notes = label_studio.read(tmp_path)
    assert (table.categories, notes[-1]) == (("dog",), "2 results that are no choices are left out")


def problem_of(root, *tasks):
    foreign(root, *tasks)
    with pytest.raises(UserError) as caught:
        label_studio.read(root)
    return str(caught.value)


def test_what_cannot_be_read(tmp_path):
    pictures(tmp_path, ["a.jpg"])
    both = a_task("a.jpg", choices(present=["dog"], absent=["dog"]))
    assert "task 41 (a.jpg): 'dog' is chosen as present and as absent" in problem_of(tmp_path, both)
    none = a_task("none.jpg", choices(tags=["dog"]))
    assert f"task 41 (none.jpg): its image is not below {tmp_path}" in problem_of(tmp_path, none)
    outside = a_task("../a.jpg", choices(tags=["dog"]))
    pictures(tmp_path.parent, ["a.jpg"])
    (tmp_path / "a.jpg").rename(tmp_path / "b.jpg")
    assert "its image is not below" in problem_of(tmp_path, outside)
    again = a_task("b.jpg", choices(tags=["dog"]))
    assert "image 'b.jpg' is there twice" in problem_of(tmp_path, again, again)
    assert "task 1: no `data` with the address of an image" in problem_of(tmp_path, {"data": {"text": "x"}})
    assert "no task has a choice, and there is no config.xml" in problem_of(tmp_path, a_task("b.jpg"))
    assert "export from Label Studio as JSON, not as JSON-MIN" in problem_of(tmp_path, {"image": "b.jpg", "id": 1})
    assert "it needs a list of them" in problem_of(tmp_path)
    changed = a_task("b.jpg") | {"data": {"image": "b.jpg", "fewtags": {"present": 5}}}
    assert "task 41 (b.jpg): `data.fewtags` was changed and cannot be read" in problem_of(tmp_path, changed)


def test_choices_that_the_interface_does_not_have(root):
    annotate(root, 0, choices(present=["dgo"]))
    annotate(root, 2, choices(present=["dgo"]))
    with pytest.raises(
        UserError, match=r"'dgo' is not a choice of config.xml \(2 times, first in task 1 \(images/a"
    ):
        label_studio.read(root)


def test_malformed_files(root):
    text(root / "config.xml", "<View>\n<Choices></View>")
    with pytest.raises(UserError, match=r"config.xml: line 2, column 12: not readable as XML \(mismatched tag\)"):
        label_studio.read(root)
    text(root / "tasks.json", "[\n{]")
    with pytest.raises(UserError, match=r"tasks.json: line 2, column 2: not JSON"):
        label_studio.read(root)
