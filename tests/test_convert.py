import os

import numpy as np
import pytest
from PIL import Image

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


def test_a_bad_size(tags, tmp_path):
    with pytest.raises(UserError, match="--size 0: a side is at least 1 pixel"):
        convert(f"tags:{tags}", tmp_path / "out", size=0)


def test_a_bad_image_leaves_nothing_behind(tags, tmp_path):
    text(tags / "in/5.png", "not an image")
    with pytest.raises(UserError, match=r"5.png"):
        convert(f"tags:{tags}", tmp_path / "out", size=8, progress=False)
    assert os.listdir(tmp_path) == ["source"]
