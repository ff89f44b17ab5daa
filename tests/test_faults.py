"""Faults of the machine become one sentence for people; nothing half written stays, and other errors pass."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from multiprocessing.resource_sharer import DupFd
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

from fewtags import cli, interrupts
from fewtags.errors import UserError
from fewtags.faults import explained, telling
from fewtags.files import is_draft, whole_file, write_text


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "the disk is full; make room there"),
        (errno.EDQUOT, "your quota of the disk is used up; make room"),
        (errno.EROFS, "the disk can only be read; choose another place"),
        (errno.EACCES, "you may not write there; choose another place"),
        (errno.EIO, "the disk reports an error; check it"),
    ],
)
def test_writing_fails(number: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "labels.csv").write_text("old")

    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(UserError, match=f"labels.csv: cannot be written, because {message}"):
        write_text(tmp_path / "labels.csv", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("labels.csv", "old")]


def test_safetensors_says_it_in_its_own_way(tmp_path: Path):
    with (
        pytest.raises(UserError, match=r"model.safetensors: cannot be written, because the disk is full"),
        whole_file(tmp_path / "model.safetensors"),
    ):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
    assert not list(tmp_path.iterdir())


def test_an_error_that_has_nothing_to_do_with_the_file_passes(tmp_path: Path):
    for problem in (ValueError("nothing of the kind"), FileNotFoundError(2, "No such file", "x")):
        with pytest.raises(type(problem)) as raised, whole_file(tmp_path / "out.csv"):
            raise problem
        assert raised.value is problem
    elsewhere = PermissionError(errno.EACCES, "Permission denied", "/images/a.png")
    with pytest.raises(UserError, match=r"^/images/a.png: Permission denied"), whole_file(tmp_path / "out.csv"):
        raise elsewhere
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_read_is_named():
    told = explained(PermissionError(errno.EACCES, "Permission denied", "/images/a.png"))
    assert str(told) == "/images/a.png: Permission denied; check the path and its permissions"
    assert explained(OSError("something else")) is None
    assert explained(UserError("told already")) is None


@pytest.mark.parametrize(
    "message",
    [
        "DataLoader worker (pid 4711) is killed by signal: Killed. ",
        "DataLoader worker (pid(s) 4711) exited unexpectedly",
        "DataLoader worker (pid 4711) exited unexpectedly with exit code 1. Details are lost",
    ],
)
def test_a_process_that_loads_images_died(message: str):
    with (
        pytest.raises(UserError, match=r"^a process that loads images was ended .*workers=1.*--resume"),
        telling("run"),
    ):
        raise RuntimeError(message)
    with pytest.raises(RuntimeError, match="of ours"), telling("run"):
        raise RuntimeError("a mistake of ours")


@pytest.mark.parametrize("cut_off", [ConnectionResetError, ConnectionRefusedError, EOFError, FileNotFoundError])
def test_a_process_that_loads_images_died_while_it_handed_a_batch_over(
    cut_off: type[Exception], monkeypatch: pytest.MonkeyPatch
):
    def dying(*address: object, **key: object) -> None:
        raise cut_off

    with open(os.devnull) as file:
        handed_over = DupFd(file.fileno())
    monkeypatch.setattr("multiprocessing.connection.Client", dying)
    with pytest.raises(UserError, match=r"^a process that loads images was ended from outside"), telling("run"):
        handed_over.detach()
    with pytest.raises(cut_off), telling("run"):  # the same elsewhere is another matter
        dying()


def test_the_command_line_prints_a_fault_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full_disk() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cli, "app", full_disk)
    monkeypatch.setattr(interrupts, "listen", lambda: None)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "Error: a file: cannot be written, because the disk is full" in capsys.readouterr().err


def test_the_draft_of_a_killed_process_is_taken_over(tmp_path: Path):
    child = os.fork()
    if child == 0:
        with whole_file(tmp_path / "model.npy") as draft:
            draft.write_bytes(b"half of")
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    assert is_draft(left)
    write_text(tmp_path / "model.npy", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["model.npy"]


def test_two_who_write_the_same_file_at_once_do_not_mix(tmp_path: Path):
    with whole_file(tmp_path / "report.html") as first, whole_file(tmp_path / "report.html") as second:
        assert first != second
        assert is_draft(first)
        assert is_draft(second)
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "report.html").read_text() == "first"  # who ended last
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_full_disk_while_features_are_cached_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from fewtags.images import cache
    from fewtags.images.scenes import scenes
    from fewtags.nn.backbones import build_backbone

    table, source = scenes(train=10, test=0, size=64)
    torch.manual_seed(0)
    backbone = build_backbone("test_resnet", pretrained=False)
    how = {"size": 64, "views": ("plain",), "seed": 0, "progress": False, "batch_size": 4}

    def cached(folder: str) -> np.ndarray:
        return cache.cached_features(table.images, source, backbone, folder=tmp_path / folder, **how)

    def fail_at_last(*asked: object) -> np.ndarray:
        monkeypatch.setattr(cache, "features", _second_call_fails(whole_features))
        return whole_features(*asked)

    whole_features, whole = cache.features, cached("whole").copy()
    monkeypatch.setattr(cache, "features", fail_at_last)
    with pytest.raises(UserError, match=r"\.partial: cannot be written, because the disk is full"):
        cached("full")
    monkeypatch.setattr(cache, "features", whole_features)
    assert (cached("full") == whole).all()
    assert not list((tmp_path / "full").glob("*.partial"))


def _second_call_fails(work):
    calls = []

    def counted(*asked: object) -> np.ndarray:
        calls.append(asked)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return work(*asked)

    return counted


def test_ctrl_c_stays_ignored_where_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interrupts, "_asked", False)  # or every training after this test would be stopped
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        interrupts.listen()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupts.listen()
        assert signal.getsignal(signal.SIGINT) is interrupts.stop_in_order
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # the next one ends the process at once
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("raised", "printed"),
    [
        ("RuntimeError('DataLoader worker (pid 7) is killed by signal: Killed. ')", False),
        ("KeyboardInterrupt", False),
        ("RuntimeError('something else')", True),
        ("ValueError('DataLoader worker (pid 7)')", True),
    ],
)
def test_what_python_drops_is_printed_unless_it_is_told_later(raised: str, printed: bool):
    program = (
        "from fewtags.faults import quiet_about_dropped\n"
        "quiet_about_dropped()\n"
        "class Deleted:\n"
        f"    def __del__(self): raise {raised}\n"
        "Deleted()\n"
        "print('went on')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "went on\n"
    assert bool(done.stderr) == printed
