"""Files are written whole or not at all: into a temporary file beside the target, then moved over it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it replaces `path` if the block ends well, else it vanishes.

    The temporary name keeps the suffix, because pandas, Pillow and NumPy read the format from it.
    """
    target = Path(path).resolve()  # a symlink stays a symlink
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.stem}.{uuid.uuid4().hex[:8]}{target.suffix}")
    try:
        yield draft
        _flush_to_disk(draft)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def write_bytes(path: str | Path, content: bytes) -> None:
    with whole_file(path) as draft:
        draft.write_bytes(content)


def write_text(path: str | Path, text: str) -> None:
    """UTF-8, and line ends as given on every system."""
    write_bytes(path, text.encode("utf-8"))


def _flush_to_disk(path: Path) -> None:
    """Without it a power cut after the move could leave an empty file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
