"""`--devices N`: the command starts its copies, ends with them, and shows what went wrong in any of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from fewtags.processes import launch
from tests.command import fresh_fewtags as fewtags
from tests.command import tiny_settings
from tests.conftest import obey_ctrl_c


def copies(monkeypatch: pytest.MonkeyPatch, code: str, count: int = 2) -> int:
    """Run this code instead of fewtags in each copy."""
    monkeypatch.setattr(launch, "command", lambda arguments: [sys.executable, "-c", code])
    return launch.run_copies(count, [])


def test_each_copy_knows_its_place(monkeypatch, tmp_path):
    code = f"import os; open(r'{tmp_path}/' + os.environ['RANK'], 'w').write(os.environ['WORLD_SIZE'])"
    assert copies(monkeypatch, code, 3) == 0
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"0": "3", "1": "3", "2": "3"}


def test_the_first_that_fails_ends_all_and_is_heard(monkeypatch, capfd):
    code = "import os, sys, time; os.environ['RANK'] == '1' and sys.exit('the disk is full'); time.sleep(60)"
    started = time.monotonic()
    assert copies(monkeypatch, code) == 1
    assert time.monotonic() - started < 30
    assert "the disk is full" in capfd.readouterr().err


def test_a_copy_that_was_killed_is_a_failure(monkeypatch):
    code = "import os, time; os.environ['RANK'] == '1' and os.kill(os.getpid(), 9); time.sleep(60)"
    assert copies(monkeypatch, code) == 1


def test_a_mistake_is_told_once(trained: Path, tmp_path: Path):
    """And `predict --devices 2` writes what `predict` writes."""
    both = [fewtags("predict", trained, tmp_path / "none", *flags) for flags in ((), ("--devices", 2))]
    assert [answer.returncode for answer in both] == [2, 2]
    assert both[1].stderr == both[0].stderr
    assert "no such file or folder" in both[1].stderr


def test_predict_with_two_processes_of_its_own(trained: Path, colours: Path, tmp_path: Path):
    answer = fewtags("predict", trained, colours / "images", "--out", tmp_path / "tags.csv", "--devices", 2)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("64 images tagged") == 1
    assert pd.read_csv(tmp_path / "tags.csv")["image"].is_monotonic_increasing


@pytest.mark.torture
def test_torchrun_and_ctrl_c(colours: Path, tmp_path: Path):
    """torchrun trains a run; another is interrupted and goes on with another number of processes."""

    arguments = ["train", str(colours), "--method", "hst", "--known", "0.5", *tiny_settings()]
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "fewtags",
    ]
    done = subprocess.run([*torchrun, *arguments, "--out", str(tmp_path / "run")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 3/3") == 1
    assert (tmp_path / "run" / "report.html").is_file()
    long = [*arguments, "--set", "epochs=60", "--out", str(tmp_path / "long")]
    process = subprocess.Popen(
        [sys.executable, "-m", "fewtags", *long, "--devices", "2"],
        preexec_fn=obey_ctrl_c,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list((tmp_path / "long").glob("checkpoints/*.safetensors")):
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.count("Continue with") == 1
    resumed = fewtags(*arguments, "--set", "epochs=60", "--out", tmp_path / "long", "--resume", "--devices", 4)
    assert resumed.returncode == 0, resumed.stderr
