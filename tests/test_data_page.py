"""The commands of docs/data.md on handing over run as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from fewtags.cli import app
from fewtags.completion.suggestions import SCHEMA, write_suggestions
from fewtags.data import FORMATS, open_data
from fewtags.labels.formats import folder
from fewtags.labels.formats.layouts import LAYOUTS
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures

PAGE = (Path(__file__).parent.parent / "docs" / "data.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Handing over")[2].partition("\n## ")[0]
BLOCKS = [text for kind, text in re.findall(r"```(\w*)\n(.*?)```", SECTION, flags=re.S) if not kind]
GENERAL, *COMMANDS = [block.strip().splitlines() for block in BLOCKS]
SPLITS = ("train", "train", "test")


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabelTable:
    """`pets`, and `filled` as `fewtags complete` leaves it: labels without images, and suggestions."""
    monkeypatch.chdir(tmp_path)
    values = np.array([[1, 0, -1], [0, 1, 0], [1, -1, 1]], np.int8)
    table = LabelTable(("photos/1.jpg", "photos/2.jpg", "photos/3.jpg"), ("dog", "cat", "car"), values, SPLITS)
    pictures(Path("pets"), table.images)
    folder.write(table, "pets")
    folder.write(table, "filled")
    row = ("photos/1.jpg", "cat", 0.75, "unknown", "none", 0.5, None, "[]", None, "[]")
    write_suggestions(pa.table([[cell] for cell in row], names=SCHEMA.names), "filled/suggestions.parquet")
    return table


def run(line: str) -> str:
    answer = CliRunner().invoke(app, shlex.split(line)[1:])
    assert answer.exit_code == 0, (line, answer.output, answer.exception)
    return answer.output


def test_the_commands_of_the_page_run(pets: LabelTable):
    lines = [line for block in COMMANDS for line in block]
    assert len(lines) >= 10
    for line in lines:
        run(line)
    for made in ("pets-reviewed", "label-studio:pets-ask", "label-studio:pets-filled"):
        assert open_data(made).table.values.tolist() == pets.values.tolist()


@pytest.mark.parametrize("form", sorted(set(LAYOUTS) - {"voc", "tags"}))
def test_the_general_command_runs_for_every_format(pets: LabelTable, form: str):
    first, second = GENERAL
    assert "written" in run(first.replace("FORMAT", form))
    run(second.replace("FORMAT:" if form == "folder" else "FORMAT", "" if form == "folder" else form))
    again = open_data("again").table
    assert (again.values.tolist(), again.splits) == (pets.values.tolist(), SPLITS)


def test_every_format_has_its_line():
    assert [name for name in FORMATS if f"`{name}:PATH`" not in PAGE] == []
    assert [name for name in LAYOUTS if f"| `{name}`" not in SECTION] == []


def test_a_format_that_does_not_exist_is_the_users_mistake(pets: LabelTable):
    answer = CliRunner().invoke(app, ["convert", "pets", "out", "--to", "yolo"])
    assert answer.exit_code == 2
    assert "'yolo' is not one of" in answer.output
    assert not Path("out").exists()
