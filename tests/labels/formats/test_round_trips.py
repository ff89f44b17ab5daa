"""Every format of `convert --to`, there and back: nothing lost, unknown stays unknown, absent stays absent."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from fewtags.cli import app
from fewtags.cli.shared import Form
from fewtags.convert import convert
from fewtags.data import FORMATS, open_data
from fewtags.errors import UserError
from fewtags.labels.formats import folder
from fewtags.labels.formats.layouts import LAYOUTS, layout
from fewtags.labels.formats.voc import CATEGORIES as VOC
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures

READ_AS = {"folder": "", "voc": "voc2007:"}
NAMES = ("zebra", "straße, naß", 'a "quoted" <name> & more', "犬", "123", "nobody looked")
IMAGES = ("b c/1, é.jpg", "b c/2.jpg", "犬/3.jpg", "a/4.jpg", "a/5 (copy).jpg", "x/6.jpg")
SPLITS = ("train", "test", "train", "train", "test", "train")


def a_table(form):
    """All three values, an image of which nothing is known and, where the format can say it, such a category."""
    values = np.random.default_rng(3).integers(-1, 2, (6, 6)).astype(np.int8)
    values[:3, :5] = [[1, 0, -1, 1, 1], [-1, 1, 0, 0, 0], [0] * 5]
    values[:, 5] = 0 if form != "openimages" else 1
    table = LabelTable(IMAGES, NAMES, values, SPLITS)
    if form == "voc":
        plain = tuple(f"{number}.jpg" for number in range(6))
        table = LabelTable(plain, tuple(VOC), np.resize(values, (6, len(VOC))), SPLITS)
    return replace(table, values=np.abs(table.values)) if form == "tags" else table


def completed(table):
    """Some of what is known was completed, some answered by a person; each says how sure it was, or nothing."""
    draw = np.random.default_rng(5).integers(0, 3, table.values.shape)
    source = np.choose(draw, np.array(["given", "completed", "human"], dtype=object))
    source[table.values == 0] = ""
    confidence = np.where(source == "completed", 0.5 + draw / 7, np.nan).astype(np.float32)
    return replace(table, source=source, confidence=confidence)


def written(root, table):
    pictures(root, table.images)
    folder.write(table, root)
    return root


def by_name(table):
    """Rows by the image's name alone: folders in front differ between formats, and so does the order."""
    keys = [image.rpartition("/")[2] for image in table.images]
    return table.rows(np.argsort(np.array(keys, dtype=object))), sorted(keys)


def assert_same(first, second):
    (first, first_keys), (second, second_keys) = by_name(first), by_name(second)
    assert first_keys == second_keys
    assert (first.categories, first.splits) == (second.categories, second.splits)
    assert first.values.tolist() == second.values.tolist()
    assert (first.source is None) == (second.source is None)
    if first.source is not None:
        assert first.source.tolist() == second.source.tolist()
        np.testing.assert_array_equal(first.confidence, second.confidence)


@pytest.mark.parametrize("with_sources", [False, True])
@pytest.mark.parametrize("form", LAYOUTS)
def test_there_and_back(form, with_sources, tmp_path):
    table = completed(a_table(form)) if with_sources else a_table(form)
    source = written(tmp_path / "source", table)
    convert(str(source), tmp_path / "there", to=form, progress=False)
    there = f"{READ_AS.get(form, f'{form}:')}{tmp_path / 'there'}"
    assert_same(open_data(there).table, table)
    convert(there, tmp_path / "back", progress=False)
    back = open_data(str(tmp_path / "back"))
    assert_same(back.table, table)
    for image in back.table.images:
        (original,) = source.rglob(image.rpartition("/")[2])
        assert (tmp_path / "back" / image).read_bytes() == original.read_bytes()


@pytest.mark.parametrize("form", sorted(set(LAYOUTS) - {"voc", "openimages", "tags"}))
@pytest.mark.parametrize("split", ["train", "test"])
def test_one_split_alone(form, split, tmp_path):
    table = replace(a_table(form), splits=(split,) * 6)
    convert(str(written(tmp_path / "source", table)), tmp_path / "there", to=form, progress=False)
    assert_same(open_data(f"{READ_AS.get(form, f'{form}:')}{tmp_path / 'there'}").table, table)


@pytest.mark.parametrize("form", sorted(set(LAYOUTS) - {"voc", "openimages"}))
def test_nothing_known_stays_nothing_known(form, tmp_path):
    table = replace(a_table(form), values=np.zeros((6, 6), np.int8))
    convert(str(written(tmp_path / "source", table)), tmp_path / "there", to=form, progress=False)
    assert_same(open_data(f"{READ_AS.get(form, f'{form}:')}{tmp_path / 'there'}").table, table)


@pytest.mark.parametrize("form", sorted(set(LAYOUTS) - {"voc", "tags"}))
def test_everything_known(form, tmp_path):
    values = np.where(np.random.default_rng(7).random((6, 6)) < 0.5, 1, -1).astype(np.int8)
    table = replace(a_table(form), values=values)
    convert(str(written(tmp_path / "source", table)), tmp_path / "there", to=form, progress=False)
    made = open_data(f"{READ_AS.get(form, f'{form}:')}{tmp_path / 'there'}")
    assert_same(made.table, table)
    assert made.complete_truth


def test_the_command_line_offers_every_format():
    assert [form.value for form in Form] == list(LAYOUTS)
    assert {form for form in LAYOUTS if form not in READ_AS} <= set(FORMATS)


def test_a_format_that_does_not_exist(tmp_path):
    with pytest.raises(UserError, match="--to yolo: there is no such format; it is one of folder, coco, voc"):
        layout("yolo")


def test_difficult_objects_on_the_command_line(tmp_path):
    table = a_table("voc")
    convert(str(written(tmp_path / "source", table)), tmp_path / "voc", to="voc", progress=False)
    spec = f"voc2007:{tmp_path / 'voc'}"
    for difficult, unknown in (("unknown", int((table.values == 0).sum())), ("absent", 0)):
        out = tmp_path / difficult
        answer = CliRunner().invoke(app, ["convert", spec, str(out), "--difficult", difficult])
        assert answer.exit_code == 0, answer.exception
        assert int((open_data(str(out)).table.values == 0).sum()) == unknown
        picture = str(tmp_path / f"{difficult}.png")
        shown = CliRunner().invoke(app, ["inspect", spec, "--difficult", difficult, "--out", picture]).output
        counted = [line.split() for line in shown.splitlines() if line.split()[:1] in (["train"], ["test"])]
        assert sum(int(cells[4]) for cells in counted[:2]) == unknown
    assert CliRunner().invoke(app, ["inspect", spec, "--difficult", "maybe"]).exit_code == 2
