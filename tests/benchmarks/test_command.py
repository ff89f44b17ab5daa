"""The scripts of benchmarks/ as commands: what a user did wrong is one line."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from benchmarks import command
from fewtags.errors import UserError


def test_a_users_error_is_the_last_word():
    def wrong() -> int:
        raise UserError("there is no such folder")

    with pytest.raises(SystemExit) as stop:
        command.run(wrong)
    assert stop.value.code == "there is no such folder"  # what Python prints, exit code 1
    with pytest.raises(SystemExit) as stop:
        command.run(lambda: 3)
    assert stop.value.code == 3
    with pytest.raises(ZeroDivisionError):  # a mistake of ours keeps its traceback
        command.run(lambda: 1 // 0)


@pytest.mark.parametrize(
    "script",
    ["claim sweep", "with_discriminant sweep", "tuning", "linear_trials", "place_trials", "training_trials"],
)
def test_data_that_is_not_there(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    name, *first = script.split()
    monkeypatch.setattr(sys, "argv", [name, *first, str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match="nowhere") as stop:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    assert "\n" not in str(stop.value)
