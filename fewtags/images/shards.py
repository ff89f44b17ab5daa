"""Cached features in several files, each a run of images: what processes that compute them together write.

Which images a file holds depends on the number of images alone, not on that of processes: a run that was killed
goes on with any number of them, and one process reads what four have written. No image is in two files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewtags.processes import together

USUAL_SHARDS, LARGEST_SHARD, STEP = 32, 16384, 16
"""Files, images in one of them, and what their number is a multiple of: the images computed at once."""


class ShardedMaps:
    """Arrays (n_k, views, ...) read as one of (Σ n_k, views, ...). `maps[:, 0]` stays on disk like the rest."""

    def __init__(self, shards: Sequence[np.ndarray]):
        self.shards = shards
        self.ends = np.cumsum([len(shard) for shard in shards])
        self.shape = (int(self.ends[-1]), *shards[0].shape[1:])
        self.dtype = shards[0].dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        rows, *rest = key if isinstance(key, tuple) else (key,)
        if isinstance(rows, slice):
            return self._rows(range(*rows.indices(len(self))), tuple(rest))
        shard, row = self._place(int(rows))
        return self.shards[shard][(row, *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.concatenate(self.shards, dtype=dtype)

    def _place(self, row: int) -> tuple[int, int]:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        shard = int(np.searchsorted(self.ends, row, side="right"))
        return shard, row - (int(self.ends[shard - 1]) if shard else 0)

    def _rows(self, rows: range, rest: tuple[Any, ...]) -> Any:
        if rows == range(len(self)):
            return ShardedMaps([shard[(slice(None), *rest)] for shard in self.shards])
        if rows.step != 1:
            return np.stack([self[(row, *rest)] for row in rows])
        starts = (0, *map(int, self.ends[:-1]))
        parts = [
            shard[(slice(max(0, rows.start - start), max(0, rows.stop - start)), *rest)]
            for shard, start in zip(self.shards, starts, strict=True)
            if start < rows.stop and rows.start < start + len(shard)
        ]
        return np.concatenate(parts) if parts else self.shards[0][(slice(0, 0), *rest)]


def shard_rows(count: int) -> list[range]:
    """Images 0 .. count - 1 → the runs of them that make up the files."""
    rows = min(LARGEST_SHARD, -(-count // USUAL_SHARDS))
    rows = max(1, -(-rows // STEP)) * STEP
    return [range(start, min(start + rows, count)) for start in range(0, count, rows)]


def shard_files(target: Path, count: int) -> list[Path]:
    stem, number = target.name.removesuffix(".npy"), len(shard_rows(count))
    return [target.with_name(f"{stem}.{place:04d}-of-{number:04d}.npy") for place in range(number)]


def opened_shards(
    target: Path, count: int, open_one: Callable[[Path, range], np.ndarray | None]
) -> ShardedMaps | None:
    """All files as one array, or None if any is missing or damaged."""
    files = shard_files(target, count)
    if not files or not files[0].is_file():
        return None
    found = (open_one(file, rows) for file, rows in zip(files, shard_rows(count), strict=True))
    shards = [shard for shard in found if shard is not None]
    return ShardedMaps(shards) if len(shards) == len(files) else None


def compute_share(target: Path, count: int, compute_one: Callable[[Path, range], None]) -> None:
    """Every process computes the files that are its own, in turn; all go on when all are done."""
    work = list(zip(shard_files(target, count), shard_rows(count), strict=True))
    for file, rows in work[together.rank() :: together.size()]:
        compute_one(file, rows)
    together.wait_for_all()


def everyone(ready: bool) -> bool:
    """Whether it is so for all processes: on a shared disk one may see a new file later than another."""
    return bool(together.smallest(torch.tensor(int(ready))))
