"""One process at a time: who is in the way is named, and a process that is gone is in nobody's way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fewtags.errors import UserError
from fewtags.locks import BusyError, Lock, alone_in

HOLD = """
import sys, time
from pathlib import Path
from fewtags.locks import alone_in
with alone_in(Path(sys.argv[1]), "train"):
    print("mine", flush=True)
    time.sleep(60)
"""


@contextmanager
def held_by_another(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "mine\n"
        yield other
        other.kill()


def test_the_other_process_is_named_with_what_to_do(tmp_path: Path):
    with held_by_another(tmp_path) as other:
        lock = Lock(tmp_path / ".lock", tmp_path, "another `fewtags train` is running there", ", or go elsewhere")
        with pytest.raises(BusyError) as busy:
            lock.acquire(patience=0)
    assert str(busy.value) == (
        f"{tmp_path}: another `fewtags train` is running there (process {other.pid}); "
        f"wait for it, or end it with `kill {other.pid}`, or go elsewhere"
    )


def test_a_process_on_another_machine_is_named_with_it(tmp_path: Path):
    mine = Lock(tmp_path / ".lock", tmp_path, "busy")
    mine.acquire()
    (tmp_path / ".lock.holder").write_text(json.dumps({"pid": 7, "host": "elsewhere"}))
    with pytest.raises(BusyError, match=r"\(process 7 on elsewhere\); .* `kill 7` on elsewhere"):
        Lock(tmp_path / ".lock", tmp_path, "busy").acquire(patience=0)
    mine.release()


@pytest.mark.parametrize("note", ["", "{}", "[1]", "half of a no"])
def test_a_note_that_cannot_be_read_is_no_obstacle(note: str, tmp_path: Path):
    mine = Lock(tmp_path / ".lock", tmp_path, "busy")
    mine.acquire()
    (tmp_path / ".lock.holder").write_text(note)
    with pytest.raises(BusyError, match=r"busy; wait for it, or end it$"):
        Lock(tmp_path / ".lock", tmp_path, "busy").acquire(patience=0)
    mine.release()


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path):
    with held_by_another(tmp_path) as other:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        assert json.loads((tmp_path / ".lock.holder").read_text())["pid"] == other.pid  # its note is still there
        with alone_in(tmp_path, "train"):
            assert json.loads((tmp_path / ".lock.holder").read_text())["pid"] == os.getpid()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_who_waits_is_told_for_whom_and_gets_it_then(tmp_path: Path):
    said: list[str] = []
    with held_by_another(tmp_path) as other:
        lock = Lock(tmp_path / ".lock", tmp_path, "another process is at it")

        def end_it(text: str) -> None:
            said.append(text)
            other.kill()

        lock.wait(end_it, patience=0)
        lock.release()
    assert said == [f"{tmp_path}: another process is at it (process {other.pid}); waiting for it"]


def test_a_child_process_does_not_keep_the_lock_of_its_parent(tmp_path: Path):
    """Processes that load images are forked while the lock is held, and may outlive a parent that is killed."""
    with alone_in(tmp_path, "train"):
        child = os.fork()
        if child == 0:
            signal.pause()
    try:
        Lock(tmp_path / ".lock", tmp_path, "busy").acquire(patience=0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_command_that_fails_at_once_leaves_no_folder(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), alone_in(tmp_path / "deep" / "new", "train"):
        raise ZeroDivisionError
    assert not (tmp_path / "deep" / "new").exists()
    with alone_in(tmp_path / "new", "train"):
        (tmp_path / "new" / "results.csv").touch()
    assert (tmp_path / "new" / "results.csv").is_file()


def test_a_place_that_cannot_be_a_folder(tmp_path: Path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with (
            pytest.raises(UserError, match="cannot be written, because a file is where a folder should be"),
            alone_in(place, "train"),
        ):
            raise AssertionError
