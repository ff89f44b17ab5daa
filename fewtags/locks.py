"""One process at a time in a folder: a lock that says who has it, and that ends with its process.

The operating system drops the lock when its process ends, however it ends: nobody ever has to remove one by hand.
A note beside it names the holder, so that who has to wait knows for whom; the note of a killed process means
nothing without the lock, and is overwritten.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from fewtags.errors import UserError
from fewtags.faults import telling
from fewtags.files import write_text

PATIENCE = 2.0
"""Seconds: so long a process that was killed, and those it had started, may take to vanish."""


class BusyError(UserError):
    """Another process has the lock."""


@dataclass(frozen=True)
class Holder:
    pid: int
    host: str

    @property
    def where(self) -> str:
        return "" if self.host == socket.gethostname() else f" on {self.host}"


class Lock:
    """A lock file. `place` is what it guards, `busy` what its holder does, `otherwise` what else one can do."""

    def __init__(self, file: Path, place: Path, busy: str, otherwise: str = ""):
        self.place, self.busy, self.otherwise = place, busy, otherwise
        self.note = file.with_name(f"{file.name}.holder")
        self._lock = FileLock(file, thread_local=False)

    def acquire(self, patience: float = PATIENCE) -> None:
        """Take it, or raise `BusyError` after so many seconds; below 0 it waits for ever."""
        try:
            with telling(self.place):
                self._lock.acquire(timeout=patience)
        except Timeout as problem:
            raise BusyError(self._who_has_it() + self._what_to_do()) from problem
        try:
            write_text(self.note, json.dumps(asdict(Holder(os.getpid(), socket.gethostname()))))
        except BaseException:
            self.release()
            raise

    def wait(self, say: Callable[[str], None], patience: float = PATIENCE) -> None:
        """Take it, however long that takes; `say` is told for whom, if it is not free soon."""
        try:
            self.acquire(patience)
        except BusyError:
            say(f"{self._who_has_it()}; waiting for it")
            self.acquire(-1)

    def release(self) -> None:
        with contextlib.suppress(OSError):  # without the lock the note means nothing
            self.note.unlink()
        self._lock.release()

    def holder(self) -> Holder | None:
        """Who has it, as far as their note says."""
        try:
            return Holder(**json.loads(self.note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _who_has_it(self) -> str:
        holder = self.holder()
        return f"{self.place}: {self.busy}" + (f" (process {holder.pid}{holder.where})" if holder else "")

    def _what_to_do(self) -> str:
        holder = self.holder()
        how = f" with `kill {holder.pid}`{holder.where}" if holder else ""
        return f"; wait for it, or end it{how}{self.otherwise}"


@contextlib.contextmanager
def alone_in(folder: Path, command: str, otherwise: str = "") -> Iterator[None]:
    """Nobody else runs this command in the folder meanwhile; the folder is made if need be."""
    is_new = not folder.exists()
    with telling(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = Lock(folder / ".lock", folder, f"another `fewtags {command}` is running there", otherwise)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
        if is_new:
            _remove_if_unused(folder)


def _remove_if_unused(folder: Path) -> None:
    """A command that failed before it wrote anything leaves nothing behind."""
    if [path.name for path in folder.iterdir()] == [".lock"]:
        with contextlib.suppress(OSError):
            (folder / ".lock").unlink()
            folder.rmdir()
