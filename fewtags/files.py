"""Files are written whole or not at all: into a draft beside the target, then moved over it.

A process that is killed while it writes leaves its draft behind. The next one that writes the same file takes the
draft over, so that nothing piles up and nobody has to tidy.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fewtags.faults import telling

DRAFT = "draft"


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a draft to write to; it replaces `path` if the block ends well, else it vanishes.

    The draft's name keeps the suffix, because pandas, Pillow and NumPy read the format from it. A full disk or a
    folder that cannot be written to becomes a `UserError` that names the file.
    """
    target = Path(path).resolve()  # a symlink stays a symlink
    with telling(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _draft_of(target) as draft:
            try:
                yield draft
                _flush_to_disk(draft)
                os.replace(draft, target)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a draft beside the new folder `path`; it takes its place if the block ends well, else it vanishes.

    Beside it, so that relative paths from one are relative paths from the other. `path` may be there, empty.
    """
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield draft
        if target.is_dir():
            target.rmdir()
        os.replace(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_bytes(path: str | Path, content: bytes) -> None:
    with whole_file(path) as draft:
        draft.write_bytes(content)


def write_text(path: str | Path, text: str) -> None:
    """UTF-8, and line ends as given on every system."""
    write_bytes(path, text.encode("utf-8"))


def is_draft(path: Path) -> bool:
    return path.name.startswith(".") and f".{DRAFT}" in path.suffixes


@contextmanager
def _draft_of(target: Path) -> Iterator[Path]:
    """One name per target. If another process is writing the same file just now, a name of our own."""
    draft = target.with_name(f".{target.stem}.{DRAFT}{target.suffix}")
    claim = _claim(draft)
    if claim is None:
        draft = draft.with_name(f".{target.stem}.{uuid.uuid4().hex[:8]}.{DRAFT}{target.suffix}")
    try:
        yield draft
    finally:
        if claim is not None:
            os.close(claim)


def _claim(draft: Path) -> int | None:
    """A descriptor whose lock the system drops when this process ends, however it ends; None: it is taken."""
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == draft.stat().st_ino:  # else its last owner has just moved it away
            return descriptor
    except (BlockingIOError, FileNotFoundError):  # taken, or moved away
        pass
    except OSError:  # a file system without locks
        draft.unlink(missing_ok=True)
    os.close(descriptor)
    return None


def _flush_to_disk(path: Path) -> None:
    """Without it a power cut after the move could leave an empty file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
