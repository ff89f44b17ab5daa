import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fewtags import data as data_module
from fewtags.data import (
    Data,
    check_absents,
    counts,
    open_data,
    scarce,
    summary,
    warnings,
    with_correlation,
)
from fewtags.errors import UserError
from fewtags.images.loading import FolderImages
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.table import LabelTable
from fewtags.recipe import Recipe
from tests.labels.formats.make import pictures, text


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "pets"
    pictures(folder, ["a.jpg", "b.jpg"])
    text(folder / "labels.csv", "image,split,dog,cat\na.jpg,train,1,0\nb.jpg,test,,1\n")
    return folder


def table(values, splits=None):
    values = np.array(values, np.int8)
    names = tuple(f"c{c}" for c in range(values.shape[1]))
    return LabelTable(tuple(map(str, range(len(values)))), names, values, splits or ("train",) * len(values))


def printed(renderable):
    shown = io.StringIO()
    Console(width=200, file=shown).print(renderable)
    return shown.getvalue()


def test_a_folder(root):
    data = open_data(str(root))
    assert (data.name, data.notes, data.complete_truth) == ("pets", (), False)
    assert data.images.open("b.jpg").size == (8, 8)
    assert open_data(str(root) + "/").name == "pets"


def test_complete_truth_when_nothing_is_unknown(root):
    text(root / "labels.csv", "image,split,dog\na.jpg,train,1\nb.jpg,test,0\n")
    assert open_data(str(root)).complete_truth


def test_tokens(root):
    with pytest.raises(UserError, match="'' has no meaning"):
        open_data(str(root), tokens="present=1,absent=0,unknown=?")


def test_images_elsewhere(root, tmp_path):
    text(tmp_path / "filled" / "labels.csv", (root / "labels.csv").read_text())
    data = open_data(str(tmp_path / "filled"), image_root=root)
    assert data.images.open("b.jpg").size == (8, 8)
    with pytest.raises(UserError, match=f"there is no file {tmp_path / 'filled' / 'a.jpg'}"):
        open_data(str(tmp_path / "filled"))
    with pytest.raises(UserError, match=f"there is no file {tmp_path / 'none' / 'a.jpg'}"):
        open_data(str(tmp_path / "filled"), image_root=tmp_path / "none")
    for spec in ("scenes", f"tags:{root}"):
        with pytest.raises(UserError, match=r"--images is for folders with a label file; .* knows where"):
            open_data(spec, image_root=root)


def test_notes(root):
    text(root / "labels.csv", "image,split,dog\na.jpg,train,1\n")
    assert open_data(str(root)).notes == ("there are no test images",)
    text(root / "labels.csv", "image,dog\na.jpg,1\nb.jpg,0\n")
    assert (
        open_data(str(root), seed=5).notes[0] == "labels.csv has no column 'split': a seeded 80/20 split (seed 5)"
    )


def test_formats_are_reached_by_name(tmp_path):
    for part in ("train2017", "val2017"):
        pictures(tmp_path, [f"{part}/1.jpg"])
        content = {
            "images": [{"id": 1, "file_name": "1.jpg"}],
            "annotations": [],
            "categories": [{"id": 3, "name": "car"}],
        }
        text(tmp_path / f"instances_{part}.json", json.dumps(content))
    data = open_data(f"coco2017:{tmp_path}")
    assert (data.name, len(data.table), data.complete_truth) == ("coco2017", 2, True)
    assert data.images.open(data.table.images[0]).size == (8, 8)


@pytest.mark.parametrize("kind", data_module.FORMATS)
def test_every_format_is_wired(kind, tmp_path):
    with pytest.raises(UserError):
        open_data(f"{kind}:{tmp_path}")
    with pytest.raises(UserError, match=f"there is no such folder; write {kind}:PATH"):
        open_data(f"{kind}:{tmp_path / 'none'}")
    with pytest.raises(UserError, match=f"write {kind}:PATH"):
        open_data(f"{kind}:")


def test_difficult_reaches_voc(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(data_module.voc, "read", lambda path, difficult: seen.append(difficult) or _raise())
    for difficult in ("unknown", "absent"):
        with pytest.raises(UserError):
            open_data(f"voc2007:{tmp_path}", difficult=difficult)
    assert seen == ["unknown", "absent"]


def _raise():
    raise UserError("stop")


def test_mistakes(tmp_path):
    with pytest.raises(UserError, match="DATA is a folder, scenes, or one of voc2007:PATH, coco2014:PATH"):
        open_data("voc:nowhere")
    with pytest.raises(UserError, match="--tokens is for folders"):
        open_data(f"tags:{tmp_path}", tokens="present=1,absent=0,unknown=")
    with pytest.raises(UserError, match="difficult=maybe: it is unknown or absent"):
        open_data(f"voc2007:{tmp_path}", difficult="maybe")


def test_scenes():
    data = open_data("scenes:train=6,test=3,seed=2,size=64,correlation=0.5")
    assert (data.name, data.complete_truth) == ("scenes", True)
    assert [row.images for row in counts(data.table)] == [6, 3]
    assert data.images.open(data.table.images[0]).size == (64, 64)
    smaller = open_data("scenes:train=6,test=3", scenes_options={"test": 1})
    assert [row.images for row in counts(smaller.table)] == [6, 1]


@pytest.mark.parametrize("part", ["rain=3", "train=many", "train"])
def test_scenes_options_that_do_not_exist(part):
    with pytest.raises(UserError, match=f"'{part}' is not understood; scenes takes train=NUMBER"):
        open_data(f"scenes:{part}")


def test_counts():
    rows = counts(table([[1, 0], [-1, 1], [0, 0]], ("train", "train", "test")))
    assert rows == [("train", 2, 2, 1, 1), ("test", 1, 0, 0, 2)]


def test_scarce_counts_known_present_training_labels():
    values = np.ones((12, 3), np.int8)
    values[:3, 1], values[:1, 2] = -1, 0
    splits = ("train",) * 11 + ("test",)
    assert scarce(table(values, splits)) == [("c1", 8)]
    assert warnings(table(values, splits)) == [
        "1 category has fewer than 10 known present training labels: c1 (8)"
    ]
    assert warnings(table(np.ones((10, 2)))) == []


def test_a_long_list_of_scarce_categories_is_cut():
    assert warnings(table(np.zeros((3, 50))))[0].endswith("c19 (0) and 30 more")


def test_summary_says_it_all(tmp_path):
    values = table([[1, 0], [-1, 1], [0, 0]], ("train", "train", "test"))
    shown = printed(summary(Data("pets", values, FolderImages(tmp_path), ("a note",), False)))
    assert "a note" in shown
    assert "pets: 2 categories" in shown
    assert ["train", "2", "2", "1", "1"] in [line.split() for line in shown.splitlines()]
    assert "Warning: 2 categories have fewer than 10 known present training labels: c0 (1), c1 (1)" in shown


def test_no_absent_training_label_stops_with_the_choices():
    only_test_has_absents = table([[1, 0], [0, -1]], ("train", "test"))
    with pytest.raises(UserError) as caught:
        check_absents(only_test_has_absents, Recipe())
    for choice in ("--assume-absent WEIGHT", "--sample-absent N", "add labels that are known to be absent"):
        assert choice in str(caught.value)


@pytest.mark.parametrize("settings", [{"assume_absent": 0.1}, {"sample_absent": 3}, {"method": "assume_absent"}])
def test_each_choice_lets_it_pass(settings):
    check_absents(table([[1, 0]]), Recipe(**settings))


def test_one_absent_is_enough():
    check_absents(table([[1, -1]]), Recipe())


def test_nothing_present_is_nothing_to_learn():
    with pytest.raises(UserError, match="there is nothing to learn"):
        check_absents(table([[0, -1]]), Recipe(assume_absent=1.0))


DOCS = (Path(__file__).parent.parent / "docs" / "data.md").read_text(encoding="utf-8")


def test_the_python_of_the_docs_runs():
    blocks = re.findall(r"```python\n(.*?)```", DOCS, flags=re.S)
    assert blocks
    for block in blocks:
        exec(block, {})


def test_the_label_file_of_the_docs_reads(tmp_path):
    pictures(tmp_path, ["photos/1.jpg", "photos/2.jpg"])
    (content,) = re.findall(r"```csv\n(.*?)```", DOCS, flags=re.S)
    text(tmp_path / "labels.csv", content)
    assert open_data(str(tmp_path)).table.values.tolist() == [[1, 0], [-1, 1]]


def test_the_tokens_of_the_docs_are_understood():
    found = re.findall(r"`(present=.*?)`", DOCS)
    assert len(found) == 4
    for tokens in found:
        Tokens.parse(tokens.replace("\\|", "|"))


def test_correlation_is_a_setting_of_scenes():
    assert with_correlation("scenes", None) == "scenes"
    assert with_correlation("scenes", 0.0) == "scenes:correlation=0.0"
    assert with_correlation("scenes:train=10", 0.5) == "scenes:train=10,correlation=0.5"
    with pytest.raises(UserError, match="a setting of `scenes`"):
        with_correlation("photos", 0.5)
