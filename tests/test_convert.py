import json
import os

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from fewtags.completion.suggestions import SCHEMA, write_suggestions
from fewtags.convert import convert, new_names, parse_sample, sampled_rows
from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import picture, pictures, text


@pytest.fixture
def tags(tmp_path):
    root = tmp_path / "source"
    names = [f"in/{n}.png" for n in range(10)]
    pictures(root, names)
    text(root / "names.txt", "dog\ncar\n")
    text(root / "train.txt", "".join(f"{name}, {n % 2}\n" for n, name in enumerate(names[:7])))
    text(root / "test.txt", "".join(f"{name}, 1\n" for name in names[7:]))
    return root


def test_copies_files_as_they_are(tags, tmp_path):
    file = convert(f"tags:{tags}", tmp_path / "out" / "there", progress=False)
    assert file == tmp_path / "out" / "there" / "labels.csv"
    source, made = open_data(f"tags:{tags}").table, open_data(str(file.parent)).table
    assert made.images[0] == "images/0.png"
    assert (made.values == source.values).all()
    assert (made.splits, made.categories) == (source.splits, source.categories)
    assert (file.parent / "images/0.png").read_bytes() == (tags / "in/0.png").read_bytes()
    assert sorted(os.listdir(file.parent)) == ["images", "labels.csv"]
    assert os.listdir(tmp_path / "out") == ["there"]


def test_sample_and_size(tags, tmp_path):
    picture(tags / "in/3.png", side=50)
    (tmp_path / "out").mkdir()  # an empty folder is as good as none
    convert(f"tags:{tags}", tmp_path / "out", sample=(4, 2), seed=1, size=16, progress=False)
    table = open_data(str(tmp_path / "out")).table
    assert (table.splits.count("train"), table.splits.count("test")) == (4, 2)
    assert len(os.listdir(tmp_path / "out" / "images")) == 6
    for image in table.images:
        with Image.open(tmp_path / "out" / image) as made:
            assert (made.size, made.format) == ((16, 16), "JPEG")


def test_what_is_made_on_the_fly_becomes_files(tmp_path):
    convert("scenes:train=3,test=2,size=64", tmp_path / "out", progress=False)
    made, source = open_data(str(tmp_path / "out")), open_data("scenes:train=3,test=2,size=64")
    assert (made.table.values == source.table.values).all()
    for row in range(5):
        first, second = (np.asarray(d.images.open(d.table.images[row])) for d in (made, source))
        assert (first == second).all()


def rows_of(table, sample, seed):
    return sampled_rows(table, sample, seed).tolist()


def test_the_sample_is_seeded_and_in_order():
    values = np.zeros((100, 1), np.int8)
    table = LabelTable(tuple(map(str, range(100))), ("c",), values, ("train", "test") * 50)
    first = rows_of(table, (20, 10), 0)
    assert first == sorted(set(first)) == rows_of(table, (20, 10), 0)
    assert [row % 2 for row in first].count(0) == 20
    assert first != rows_of(table, (20, 10), 1)
    assert rows_of(table, (50, 50), 3) == list(range(100))
    with pytest.raises(UserError, match="--sample 51,0: there are 50 train images"):
        rows_of(table, (51, 0), 0)


def test_a_sample_is_two_numbers():
    assert parse_sample(None) is None
    assert parse_sample("10000, 4000") == (10000, 4000)


@pytest.mark.parametrize("text", ["", "100", "1,2,3", "a,b", "-1,2"])
def test_a_sample_that_is_not(text):
    with pytest.raises(UserError, match="write it as TRAIN,TEST, such as 10000,4000"):
        parse_sample(text)


def test_names_stay_distinct():
    assert names(["a/1.jpg", "b/2.jpg"], None) == ["images/1.jpg", "elsewhere/2.jpg"]
    assert names(["a/1.jpg", "b/1.jpg"], None) == ["images/a/1.jpg", "elsewhere/b/1.jpg"]
    assert names(["a/1.jpg", "a/1.png"], ".jpg") == ["images/a/1.jpg.jpg", "elsewhere/a/1.png.jpg"]
    assert names(["1.png", "a/1.png"], ".jpg") == ["images/1.jpg", "elsewhere/a/1.jpg"]


def names(images, suffix):
    table = LabelTable(tuple(images), ("c",), np.zeros((2, 1), np.int8), ("train", "test"))
    return new_names(table, suffix, {"train": "images", "test": "elsewhere"})


def test_a_folder_with_something_in_it_is_refused(tags, tmp_path):
    text(tmp_path / "out" / "mine.txt", "keep")
    with pytest.raises(UserError, match="is there already and not empty"):
        convert(f"tags:{tags}", tmp_path / "out", progress=False)
    assert os.listdir(tmp_path / "out") == ["mine.txt"]
    with pytest.raises(UserError, match="is there already and not empty"):
        convert(f"tags:{tags}", tmp_path / "out" / "mine.txt", progress=False)


def test_says_how_the_source_was_understood(tags, tmp_path):
    said = []
    convert(f"tags:{tags}", tmp_path / "out", progress=False, say=said.append)
    assert said == ["tags only: everything that is not tagged is unknown"]


def test_a_bad_size(tags, tmp_path):
    with pytest.raises(UserError, match="--size 0: a side is at least 1 pixel"):
        convert(f"tags:{tags}", tmp_path / "out", size=0)


def test_a_bad_image_leaves_nothing_behind(tags, tmp_path):
    text(tags / "in/5.png", "not an image")
    with pytest.raises(UserError, match=r"5.png"):
        convert(f"tags:{tags}", tmp_path / "out", size=8, progress=False)
    assert os.listdir(tmp_path) == ["source"]


# For other tools


def test_sizes_are_those_of_the_written_images(tags, tmp_path):
    picture(tags / "in/3.png", side=50)
    convert(f"tags:{tags}", tmp_path / "kept", to="coco", progress=False)
    convert(f"tags:{tags}", tmp_path / "small", to="coco", size=16, progress=False)
    convert("scenes:train=2,test=1,size=64", tmp_path / "drawn", to="coco", progress=False)
    assert sizes_of(tmp_path / "kept") == {(8, 8), (50, 50)}
    assert sizes_of(tmp_path / "small") == {(16, 16)}
    assert sizes_of(tmp_path / "drawn") == {(64, 64)}


def sizes_of(folder):
    content = json.loads((folder / "annotations/instances_train.json").read_text())
    for image in content["images"]:
        with Image.open(folder / "train" / image["file_name"]) as made:
            assert made.size == (image["width"], image["height"])
    return {(image["width"], image["height"]) for image in content["images"]}


@pytest.mark.parametrize("form", ["coco", "cvat", "fiftyone"])
def test_a_bad_image_for_another_tool_leaves_nothing_behind(tags, tmp_path, form):
    text(tags / "in/5.png", "not an image")
    (tags / "in/4.png").unlink()
    with pytest.raises(UserError, match=r"4.png is missing"):
        convert(f"tags:{tags}", tmp_path / "out", to=form, progress=False)
    picture(tags / "in/4.png")
    with pytest.raises(UserError, match=r"5.png: not an image"):
        convert(f"tags:{tags}", tmp_path / "out", to=form, size=8, progress=False)
    assert os.listdir(tmp_path) == ["source"]


def test_what_a_format_cannot_say_is_told_before_images_are_copied(tags, tmp_path):
    with pytest.raises(UserError, match="Pascal VOC has the 20 categories"):
        convert(f"tags:{tags}", tmp_path / "out", to="voc", progress=False)
    with pytest.raises(UserError, match="--to yolo: there is no such format"):
        convert(f"tags:{tags}", tmp_path / "out", to="yolo", progress=False)
    with pytest.raises(UserError, match="tags cannot say that a label is absent"):
        convert("scenes:train=2,test=1,size=64", tmp_path / "out", to="tags", progress=False)
    assert os.listdir(tmp_path) == ["source"]


def suggest(file, *rows):
    """`rows`: image, category, probability, decision."""
    rest = ("none", 0.5, None, "[]", None, "[]")
    table = pa.table(list(zip(*(row + rest for row in rows), strict=True)), names=SCHEMA.names)
    write_suggestions(table, file)
    return file


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_suggestions_for_label_studio(tags, tmp_path, ending):
    file = suggest(
        tmp_path / f"s.{ending}", ("in/0.png", "car", 0.75, "present"), ("in/1.png", "dog", 0.1, "unknown")
    )
    where = "/data/local-files/?d=pets/"
    convert(f"tags:{tags}", tmp_path / "out", to="label-studio", suggestions=file, prefix=where, progress=False)
    first, second = json.loads((tmp_path / "out/tasks.json").read_text())[:2]
    assert first["data"]["image"] == "/data/local-files/?d=pets/images/0.png"
    assert first["data"]["probabilities"] == {"car": 0.75}
    assert first["predictions"][0]["score"] == 0.75
    assert first["predictions"][0]["result"][0]["value"]["choices"] == ["dog", "car"]
    assert "predictions" not in second
    made, source = open_data(f"label-studio:{tmp_path / 'out'}").table, open_data(f"tags:{tags}").table
    assert (made.values == source.values).all()  # a suggestion is no label


def test_suggestions_of_images_that_were_not_drawn_are_left_out(tags, tmp_path):
    file = suggest(tmp_path / "s.parquet", *((f"in/{n}.png", "car", 0.75, "present") for n in range(10)))
    convert(f"tags:{tags}", tmp_path / "out", (2, 1), to="label-studio", suggestions=file, progress=False)
    assert len(json.loads((tmp_path / "out/tasks.json").read_text())) == 3


def test_suggestions_of_other_data(tags, tmp_path):
    file = suggest(
        tmp_path / "s.parquet", *[("z.png", "car", 0.5, "unknown")] * 2, ("in/0.png", "bus", 0.5, "absent")
    )
    with pytest.raises(UserError) as caught:
        convert(f"tags:{tags}", tmp_path / "out", to="label-studio", suggestions=file, progress=False)
    assert "image 'z.png' is not in the data (2 times, first in row 1)" in str(caught.value)
    assert "category 'bus' is not in the data (once, first in row 3)" in str(caught.value)


@pytest.mark.parametrize(("flag", "value"), [("suggestions", "s.parquet"), ("prefix", "x/")])
def test_flags_of_label_studio_alone(tags, tmp_path, flag, value):
    with pytest.raises(UserError, match=f"--{flag} {value}: only for --to label-studio"):
        convert(f"tags:{tags}", tmp_path / "out", to="cvat", progress=False, **{flag: value})
