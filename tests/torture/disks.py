"""A small disk of its own, to be filled or made read-only; where none can be mounted the tests say so loudly."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[Path]:
    place.mkdir(parents=True)
    mounted = _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place))
    if mounted.returncode != 0:
        warnings.warn(
            f"no small disk can be mounted here: full and read-only disks are NOT tested ({mounted.stderr})",
            stacklevel=2,
        )
        pytest.skip(f"mounting a disk needs root: {mounted.stderr}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def remount(place: Path, how: str) -> None:
    """`how`: "ro", "rw" or "size=20m"."""
    assert _mount("-o", f"remount,{how}", str(place)).returncode == 0


def _mount(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, text=True)
    except FileNotFoundError as problem:
        return subprocess.CompletedProcess(arguments, 1, "", str(problem))
