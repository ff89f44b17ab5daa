"""What the cache folder holds, how large it is and when it was last used, and what of it can go."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from rich import box
from rich.console import Console
from rich.table import Table

from fewtags.durations import days

REVIEW = "review"
"""The folder below the cache with the indexes of `fewtags review`."""
LOCK = ".lock"
ABANDONED = 3600.0


@dataclass(frozen=True)
class Entry:
    name: str
    what: str
    """In words: features, of how many images; unfinished ones; an index of suggestions."""
    paths: tuple[Path, ...]
    size: int
    used: float
    """When it was last read or written, in seconds since 1970."""
    locks: tuple[Path, ...] = ()
    """Held while a file of it is being written."""


def entries(folder: Path) -> list[Entry]:
    """Largest first. Only what fewtags writes there is listed: a wrong FEWTAGS_CACHE must not cost other files."""
    if not folder.is_dir():
        return []
    stems = sorted({path.stem for path in folder.glob("*.json") if path.is_file() and _description(path)})
    found = [_features(folder, stem) for stem in stems]
    found += [_index(path) for path in _index_folders(folder / REVIEW)]
    return sorted(found, key=lambda entry: -entry.size)


def _features(folder: Path, stem: str) -> Entry:
    """All files of one name: the features or what there is of them, their description and lock."""
    about = _description(folder / f"{stem}.json")
    paths = tuple(sorted(path for path in folder.iterdir() if path.name.startswith(f"{stem}.")))
    done = any(path.suffix == ".npy" for path in paths)
    views = about.get("views")
    what = f"{'features' if done else 'unfinished features'} of {about['images']:,} images"
    what += f", {len(views)} views" if isinstance(views, list) and len(views) > 1 else ""
    locks = tuple(path for path in paths if path.suffix == LOCK)
    return Entry(stem, what, paths, _size(paths), _used(paths), locks)


def _index_folders(folder: Path) -> list[Path]:
    """Hidden ones are being built, unless whoever built them is long gone."""
    found = [path for path in sorted(folder.glob("*")) if path.is_dir()]
    return [path for path in found if path.name[0] != "." or time.time() - path.stat().st_mtime > ABANDONED]


def _index(path: Path) -> Entry:
    files = tuple(file for file in path.rglob("*") if file.is_file())
    name = f"{REVIEW}/{path.name}"
    return Entry(name, "index of suggestions", (path,), _size(files), _used((path, *files)))


def _description(path: Path) -> dict:
    """What a feature file's JSON says; nothing if it is not one of ours."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return (
        about if isinstance(about, dict) and isinstance(about.get("images"), int) and "backbone" in about else {}
    )


def _size(paths: Iterable[Path]) -> int:
    """What the files take on the disk; a sparse one takes less than it is long."""
    return sum(path.stat().st_blocks * 512 for path in paths if path.is_file())


def _used(paths: Iterable[Path]) -> float:
    return max((path.stat().st_mtime for path in paths), default=0.0)


def old(found: Sequence[Entry], seconds: float, now: float) -> list[Entry]:
    """Those that were not used for so long."""
    return [entry for entry in found if now - entry.used >= seconds]


def remove(entry: Entry) -> bool:
    """Delete an entry; False if a process is writing it just now. Locks stay: somebody may wait for them."""
    with ExitStack() as held:
        try:
            for lock in entry.locks:
                held.enter_context(FileLock(lock, timeout=0))
        except Timeout:
            return False
        for path in entry.paths:
            if LOCK not in path.name:  # nor who holds it
                _delete(path)
    return True


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def show_cache(folder: Path, console: Console) -> None:
    found = entries(folder)
    if found:
        console.print(cache_table(folder, found, time.time()))
    else:
        console.print(f"{folder}: nothing is cached", highlight=False, soft_wrap=True)


def clean_cache(folder: Path, age: float, really: bool, console: Console) -> None:
    """Delete what was not used for `age` seconds, or only say what that is."""
    found = old(entries(folder), age, time.time())
    if not found:
        console.print(f"{folder}: nothing to delete", highlight=False, soft_wrap=True)
        return
    console.print(cache_table(folder, found, time.time()))
    if not really:
        console.print("Nothing was deleted; add --yes to delete this.")
        return
    busy = [entry.name for entry in found if not remove(entry)]
    console.print(f"Deleted: {len(found) - len(busy)} of {len(found)}", highlight=False)
    for name in busy:
        console.print(f"{name} stays: a process is writing it just now", highlight=False, soft_wrap=True)


def cache_table(folder: Path, found: Sequence[Entry], now: float) -> Table:
    total = sum(entry.size for entry in found)
    table = Table(
        title=f"{folder}: {_megabytes(total)}", title_justify="left", title_style="", box=box.SIMPLE_HEAD
    )
    for column in ("name", "what it is", "size", "last used"):
        table.add_column(column, justify="right" if column == "size" else "left", overflow="fold")
    for entry in found:
        table.add_row(entry.name, entry.what, _megabytes(entry.size), days(now - entry.used))
    return table


def _megabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
