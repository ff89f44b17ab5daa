"""Tables of arbitrary cells, names and quoting (Hypothesis): read as a plain reader reads them, or refused with
the line and the column. And arbitrary bytes in every label file of every format: read or refused."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fewtags.data import open_data
from fewtags.errors import UserError
from tests.bad_input.data_sets import FORMS, label_files, make
from tests.bad_input.test_label_files import attempt, oracle
from tests.labels.formats.make import pictures

QUICK = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
IMAGES = ["a.png", "b c.png", "日本.png", 'qu"ote.png', "com,ma.png", "new\nline.png", "deep/er/d.png", "é.png"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
CELLS = st.one_of(st.sampled_from(["1", "0", "", " 1", "0 "]), st.sampled_from(["2", "-1", "yes", "1.0"]) | TEXT)
NAMES = st.lists(st.one_of(st.sampled_from(["image", "split", "cat", "dog"]), TEXT), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cells")
    pictures(folder, IMAGES)
    return folder


@st.composite
def sheets(draw: st.DrawFn) -> list[list[str]]:
    """A header and rows; mostly as they should be."""
    categories = draw(
        st.lists(TEXT.filter(lambda name: name.strip() == name != ""), min_size=1, max_size=4, unique=True)
    )
    header = draw(st.one_of(st.just(["image", "split", *categories]), st.just(["image", *categories]), NAMES))
    images = draw(st.lists(st.sampled_from(IMAGES), min_size=0, max_size=6, unique=draw(st.booleans())))
    rows = []
    for image in images:
        cells = {"image": image, "split": draw(st.sampled_from(["train", "test", "train", " test", "val"]))}
        rows.append([cells.get(name) or draw(CELLS) for name in header])
    return [header, *rows]


def as_csv(rows: list[list[str]], quoting: int, end: str) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator=end).writerows(rows)
    return text.getvalue()


@QUICK
@given(
    rows=sheets(), quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), end=st.sampled_from(["\n", "\r\n"])
)
def test_any_table(root: Path, rows: list[list[str]], quoting: int, end: str):
    (root / "labels.csv").write_text(as_csv(rows, quoting, end), encoding="utf-8", newline="")
    found, expected = attempt("csv", root, repr(rows)), oracle("csv", root)
    if isinstance(found, UserError):
        assert "labels.csv" in str(found)
        assert expected is None, f"refused, though nothing is wrong: {found}"
    else:
        assert found == expected


@settings(QUICK, max_examples=20)
@given(content=st.binary(max_size=300))
@example(content=b"image,cat\n\xff\n")
@pytest.mark.parametrize("name", FORMS)
def test_any_bytes(name: str, content: bytes, tmp_path_factory: pytest.TempPathFactory):
    base = tmp_path_factory.getbasetemp() / f"bytes-{name}"
    if not base.is_dir():
        make(name, base)
    for file in label_files(base):
        before = file.read_bytes()
        file.write_bytes(content)
        try:
            found = attempt(name, base, f"{file.name}: {content!r}")
        finally:
            file.write_bytes(before)
        assert isinstance(found, dict) or base.name in str(found)


BEFORE = "image,split,cat,dog\na.png,train,1,0\nb.png,train,,1\nc.png,test,0,\n"
MISTAKES = [
    ("b.png,train,,1", "b.png,train,,x", "line 3, column 'dog': 'x' has no meaning"),
    ("b.png,train,,1", "b.png,train,?,1", "line 3, column 'cat': '?' has no meaning"),
    ("c.png,test", "c.png,exam", "line 4, column 'split': 'exam' is neither train nor test"),
    ("c.png,test", "gone.png,test", "line 4, column 'image': there is no file"),
    ("c.png,test", "../c.png,test", "line 4, column 'image': ../c.png is outside the folder"),
    ("c.png,test", "./a.png,test", "line 4, column 'image': ./a.png is already on line 2"),
    ("c.png,test", ",test", "line 4, column 'image': is blank"),
    ("c.png,test", "a.png/../../x,test", "line 4, column 'image': a.png/../../x is outside the folder"),
    ("b.png,train,,1", "b.png,train,1", "line 3: 3 columns, the header has 4"),
    ("b.png,train,,1", "b.png,train,,1,1", "line 3: 5 columns, the header has 4"),
    ("image,split,cat,dog", "image,split,cat,cat", "line 1, column 4: 'cat' is already the name of column 3"),
    ("image,split,cat,dog", "image,split,cat,", "line 1, column 4: the column has no name"),
    ("image,split,cat,dog", "file,split,cat,dog", "line 1, no column 'image'"),
    ("b.png,train,,1", 'b.png,train,"1,1', "line 3: not readable as CSV"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named_by_line_and_column(old: str, new: str, message: str, tmp_path: Path):
    pictures(tmp_path, ["a.png", "b.png", "c.png"])
    assert old in BEFORE
    (tmp_path / "labels.csv").write_text(BEFORE.replace(old, new, 1))
    with pytest.raises(UserError) as problem:
        open_data(str(tmp_path))
    assert f"{tmp_path / 'labels.csv'}: {message}" in str(problem.value)


@pytest.mark.parametrize("place", ["a link to itself", "a link to nothing", "a folder"])
def test_what_is_no_file_does_not_hide_its_neighbours(place: str, tmp_path: Path):
    pictures(tmp_path, ["a.png", "b.png", "c.png"])
    (tmp_path / "b.png").unlink()
    if place == "a folder":
        (tmp_path / "b.png").mkdir()
    else:
        (tmp_path / "b.png").symlink_to("b.png" if "itself" in place else "nowhere")
    (tmp_path / "labels.csv").write_text(BEFORE)
    with pytest.raises(UserError) as problem:
        open_data(str(tmp_path))
    assert "line 3, column 'image': there is no file" in str(problem.value)
    assert "line 2" not in str(problem.value)


@pytest.mark.parametrize("name", ["coco", "coco2014", "cvat", "label-studio", "tags", "voc", "vg200"])
def test_no_format_leaves_its_folder(name: str, tmp_path: Path):
    """An image of another folder, named by a path that leads there."""
    root = make(name, tmp_path / "data")
    first = sorted(file for file in root.rglob("*") if file.suffix in (".png", ".jpg"))[0]
    shutil.copy(first, tmp_path / first.name)
    up = "../" * len(first.relative_to(root).parts)
    for file in label_files(root):
        text = file.read_text(encoding="utf-8")
        for inside in (first.relative_to(root).as_posix(), f"{first.parent.name}/{first.name}", first.name):
            text = text.replace(f'"{inside}"', f'"{up}{first.name}"').replace(f"{inside},", f"{up}{first.name},")
        lines = [f"{up}{first.name}" if line == first.name else line for line in text.split("\n")]
        lines = [f"{up}{first.stem}" if line == first.stem else line for line in lines]
        file.write_text("\n".join(lines), encoding="utf-8")
    if name == "voc":
        shutil.copy(root / "Annotations" / f"{first.stem}.xml", tmp_path / f"{first.stem}.xml")
    if name == "label-studio":  # it looks for the name below the folder, and nowhere else
        assert open_data(f"{FORMS[name].prefix}{root}").table.images[0] == first.relative_to(root).as_posix()
        return
    with pytest.raises(UserError, match="outside the folder"):
        open_data(f"{FORMS[name].prefix}{root}")
