"""Which data a run was trained on: any difference is found and named, and a copy is no difference."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewtags.data import Data, open_data
from fewtags.errors import UserError
from fewtags.labels.table import COMPLETED, GIVEN
from fewtags.reproduction import fingerprint as fingerprint_module
from fewtags.reproduction.data_differences import MOST_NAMED, data_differences
from fewtags.reproduction.fingerprint import END, content, write_fingerprint
from tests.conftest import write_colours


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_colours(tmp_path / "data", train=12, test=4)


@pytest.fixture
def recorded(folder: Path, tmp_path: Path) -> Path:
    data = open_data(str(folder))
    write_fingerprint(tmp_path / "data.parquet", data.table, data.images)
    return tmp_path / "data.parquet"


def differences(recorded: Path, data: Data) -> list[str]:
    return data_differences(recorded, data.table, data.images)


def edit(folder: Path, before: str, after: str) -> Data:
    labels = folder / "labels.csv"
    text = labels.read_text()
    assert before in text
    labels.write_text(text.replace(before, after, 1))
    return open_data(str(folder))


def test_a_copy_is_the_same_data(folder: Path, recorded: Path, tmp_path: Path):
    assert differences(recorded, open_data(str(folder))) == []
    shutil.copytree(folder, tmp_path / "elsewhere", copy_function=shutil.copyfile)  # new dates
    assert differences(recorded, open_data(str(tmp_path / "elsewhere"))) == []


def test_a_changed_label_is_named_with_both_values(folder: Path, recorded: Path):
    line = (folder / "labels.csv").read_text().splitlines()[4]
    assert line.startswith("images/003.png,train,")
    was, turned = ("present", "0") if line.split(",")[2] == "1" else ("absent", "1")
    cells = line.split(",")
    changed = edit(folder, line, ",".join([*cells[:2], turned, *cells[3:]]))
    is_ = {"0": "absent", "1": "present"}[turned]
    assert differences(recorded, changed) == [f"1 label differs: images/003.png red (was {was}, is {is_})"]


def test_a_changed_split_is_named(folder: Path, recorded: Path):
    changed = edit(folder, "images/002.png,train", "images/002.png,test")
    assert differences(recorded, changed) == ["1 image is in another split: images/002.png (was train, is test)"]


def test_a_file_with_another_content_is_named(folder: Path, recorded: Path):
    path = folder / "images" / "005.png"
    path.write_bytes((folder / "images" / "006.png").read_bytes())
    assert differences(recorded, open_data(str(folder))) == ["1 image file has another content: images/005.png"]


def test_images_that_came_and_went_are_named(folder: Path, recorded: Path):
    (folder / "images" / "000.png").rename(folder / "images" / "new.png")
    changed = edit(folder, "images/000.png", "images/new.png")
    assert differences(recorded, changed) == ["1 image is gone: images/000.png", "1 image is new: images/new.png"]


def test_categories_that_came_and_went_are_named(folder: Path, recorded: Path):
    changed = edit(folder, "red", "purple")
    assert differences(recorded, changed) == ["1 category is gone: red", "1 category is new: purple"]


def test_another_order_of_images_or_categories_is_a_difference(folder: Path, recorded: Path):
    data = open_data(str(folder))
    turned = replace(data, table=data.table.rows(np.arange(len(data.table))[::-1]))
    (sentence,) = differences(recorded, turned)
    assert "another order" in sentence
    table = data.table
    other = replace(table, categories=table.categories[::-1], values=table.values[:, ::-1])
    (sentence,) = differences(recorded, replace(data, table=other))
    assert "order of the categories" in sentence


def test_a_completed_label_is_not_a_given_one(folder: Path, recorded: Path):
    data = open_data(str(folder))
    source = np.full(data.table.values.shape, GIVEN, dtype=object)
    assert differences(recorded, replace(data, table=replace(data.table, source=source))) == []
    source[1, 2] = COMPLETED
    (sentence,) = differences(recorded, replace(data, table=replace(data.table, source=source)))
    assert sentence.startswith("1 label differs: images/001.png blue")
    assert "(completed)" in sentence


def test_many_differences_are_counted_and_some_named(folder: Path, recorded: Path):
    data = open_data(str(folder))
    changed = replace(data, table=data.table.with_values(-data.table.values))
    (sentence,) = differences(recorded, changed)
    assert sentence.startswith(f"{changed.table.values.size} labels differ: ")
    assert sentence.count("(was") == MOST_NAMED
    assert sentence.endswith(f"and {changed.table.values.size - MOST_NAMED} more")


def test_parts_of_any_size_give_the_same(folder: Path, recorded: Path, tmp_path: Path, monkeypatch):
    data = open_data(str(folder))
    whole = write_fingerprint(tmp_path / "one.parquet", data.table, data.images)
    monkeypatch.setattr(fingerprint_module, "ROWS_AT_ONCE", 3)
    assert write_fingerprint(tmp_path / "parts.parquet", data.table, data.images) == whole
    assert differences(tmp_path / "parts.parquet", data) == []


def test_short_names_change_with_labels_and_with_files(folder: Path, tmp_path: Path):
    data = open_data(str(folder))
    before = write_fingerprint(tmp_path / "a.parquet", data.table, data.images)
    other = data.table.with_values(np.roll(data.table.values, 1, axis=1))
    labels = write_fingerprint(tmp_path / "b.parquet", other, data.images)
    assert (labels.labels == before.labels, labels.images == before.images) == (False, True)
    (folder / "images" / "000.png").write_bytes((folder / "images" / "001.png").read_bytes())
    files = write_fingerprint(tmp_path / "c.parquet", data.table, data.images)
    assert (files.labels == before.labels, files.images == before.images) == (True, False)


def test_of_large_data_only_the_ends_are_read(folder: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(fingerprint_module, "WHOLE_UP_TO", 1000)
    data = open_data(str(folder))
    assert write_fingerprint(tmp_path / "data.parquet", data.table, data.images).reading == "ends"
    assert differences(tmp_path / "data.parquet", data) == []  # and compared in the same way
    large = tmp_path / "large"
    large.write_bytes(bytes(4 * END))
    before = content(large, "ends"), content(large, "whole")
    for place, seen in ((0, True), (2 * END, False), (4 * END - 1, True)):
        changed = bytearray(4 * END)
        changed[place] = 1
        large.write_bytes(changed)
        assert (content(large, "ends") != before[0]) is seen
        assert content(large, "whole") != before[1]
    assert content(tmp_path / "gone", "ends") == "unreadable"


def test_drawn_images_are_known_by_what_decides_them(tmp_path: Path):
    data = open_data("scenes:train=6,test=2,size=64")
    write_fingerprint(tmp_path / "data.parquet", data.table, data.images)
    assert differences(tmp_path / "data.parquet", open_data("scenes:train=6,test=2,size=64")) == []
    (sentence, *_) = differences(tmp_path / "data.parquet", open_data("scenes:train=6,test=2,size=96"))
    assert sentence.startswith("8 image files have another content")


def test_a_damaged_file_is_named(folder: Path, tmp_path: Path):
    (tmp_path / "data.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(UserError, match=r"data\.parquet: damaged"):
        differences(tmp_path / "data.parquet", open_data(str(folder)))
