"""What a killed command left on the disk: is every file readable, or one that the next command takes over?"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.ipc as ipc
import yaml
from PIL import Image
from safetensors.torch import load_file

from fewtags.files import is_draft

PASSING = (".partial", ".holder")
"""Files that an end in order removes. So it does a draft, and the write-ahead log of SQLite."""


def is_passing(path: Path) -> bool:
    drafts = any(map(is_draft, (path, *path.parents)))
    return drafts or path.suffix in PASSING or path.name.endswith(("-wal", "-shm"))


def passing(folder: Path) -> list[Path]:
    """Files that should be gone when the command has ended well."""
    return [path for path in files(folder) if is_passing(path)]


def unreadable(folder: Path) -> list[str]:
    """Files under their own name that are not whole, and why."""
    found = []
    for path in files(folder):
        if not is_passing(path) and (problem := problem_of(path)):
            found.append(f"{path.relative_to(folder)}: {problem}")
    return found


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def problem_of(path: Path) -> str | None:
    reader = _read_events if "tfevents" in path.name else READERS.get(path.suffix)
    try:
        if reader is not None:
            reader(path)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return None


def _read_page(path: Path) -> None:
    if not path.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        raise ValueError("it does not end as a page does")


@contextmanager
def copy_of(path: Path) -> Iterator[Path]:
    """Of a file of answers. Who opens one after a kill repairs it, and that is the next command's to do."""
    with tempfile.TemporaryDirectory() as folder:
        for part in path.parent.glob(f"{path.name}*"):
            shutil.copy(part, folder)
        yield Path(folder) / path.name


def _read_answers(path: Path) -> None:
    with copy_of(path) as copy:
        connection = sqlite3.connect(copy)
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        connection.close()
    if verdict != "ok":
        raise ValueError(verdict)


def _read_picture(path: Path) -> None:
    with Image.open(path) as picture:
        picture.load()


def _read_settings(path: Path) -> None:
    if path.name != "hparams.yaml" and not isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict):
        raise ValueError("no settings in it")


def _read_events(path: Path) -> None:
    """A log that grows; whoever reads it stops before an event that is not whole."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    list(EventFileLoader(str(path)).Load())


READERS: dict[str, Callable[[Path], Any]] = {
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".yaml": _read_settings,
    ".csv": pd.read_csv,
    ".parquet": pd.read_parquet,
    ".npy": lambda path: np.load(path).sum(),
    ".arrow": lambda path: ipc.open_file(str(path)).read_all(),
    ".safetensors": load_file,
    ".png": _read_picture,
    ".html": _read_page,
    ".sqlite": _read_answers,
}
