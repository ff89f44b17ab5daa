"""What `fewtags simulate` refuses, before anything is written."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewtags import cli
from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.labels.formats import folder
from fewtags.recipe import Recipe
from fewtags.simulation.simulate import simulate
from tests.conftest import TINY, write_colours

PLAIN = Recipe(**(TINY | {"epochs": 2, "method": "plain"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--orders", "best"], "--orders best: it is one of value, uncertain, confident, random"),
        (["--orders", ","], "--orders: nothing is given"),
        (["--start", "2"], "--start 2: a share of the labels"),
        (["--seeds", "x"], "--seeds x: not a whole number"),
        (["--method", "hts"], "there is no method 'hts'"),
        (["--set", "epoch=3"], "did you mean 'epochs'"),
    ],
)
def test_a_users_mistake_is_one_message_and_exit_code_2(
    colours: Path, arguments: list[str], message: str, tmp_path: Path, monkeypatch, capsys
):
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["fewtags", "simulate", str(colours), *arguments, "--out", str(out)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_incomplete_or_filled_labels_are_no_truth(tmp_path: Path):
    holes = write_colours(tmp_path / "holes", train=8, test=4, unknown=0.5)
    table = open_data(str(holes)).table
    row, column = np.argwhere(table.values[:8] == 0)[0]
    with pytest.raises(UserError, match=f"training labels are unknown .the first: images/{row:03d}.png, ") as told:
        simulate(str(holes), PLAIN, tmp_path / "out")
    assert table.categories[column] in str(told.value)
    assert "every training label has to be given" in str(told.value)
    full = open_data(str(write_colours(tmp_path / "full", train=8, test=4))).table
    source = np.full(full.values.shape, "given", dtype=object)
    source[2, 1] = "completed"
    folder.write(replace(full, source=source), tmp_path / "full")
    with pytest.raises(UserError, match="1 of 32 training labels are filled in by `fewtags complete`"):
        simulate(str(tmp_path / "full"), PLAIN, tmp_path / "out")
    folder.write(replace(full, splits=("test",) * 12), tmp_path / "full")
    with pytest.raises(UserError, match="there are no training images"):
        simulate(str(tmp_path / "full"), PLAIN, tmp_path / "out")
    assert not (tmp_path / "out").exists()
