"""Batches: which image and which view at which step, decided by seed and epoch alone.

The order of an epoch is a function of (seed, epoch), never of what ran before, so that a resumed run sees exactly
what an uninterrupted one sees. Samplers yield (row, view) pairs; data sets keep no state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from fewtags.batch import Batch
from fewtags.errors import UserError
from fewtags.finite import require_cached
from fewtags.images.loading import ImageSource
from fewtags.processes import together

PLAIN_VIEW = 0
"""The unaugmented view: position 0 of a feature cache, and what evaluation reads."""


@dataclass(frozen=True)
class KnownLabels:
    """What training may know of the training images, and nothing else. All (images, categories)."""

    labels: np.ndarray
    """-1, 0, +1."""
    held_out: np.ndarray | None = None
    """-1, 0, +1: known labels kept for thresholds."""
    folds: np.ndarray | None = None
    """0, 1."""
    assume_absent: float | None = None
    sample_absent: int | None = None
    sample_absent_weight: float = 0.5


class EpochOrder(Sampler[list[tuple[int, int]]]):
    """Batches of (row, view seed) in an order drawn from (seed, epoch); of each, this process's share."""

    def __init__(self, rows: int, batch_size: int, seed: int):
        self.rows, self.batch_size, self.seed, self.epoch = rows, batch_size, seed, 0
        self.sampler = self  # where Lightning looks for set_epoch

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return max(1, self.rows // self.batch_size)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        generator = np.random.default_rng([self.seed, self.epoch, 17])
        order = generator.permutation(self.rows)
        views = generator.integers(1, 2**31, self.rows)
        share = together.own_share(self.batch_size)
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            chosen = slice(start + share.start, start + share.stop)
            yield list(zip(order[chosen].tolist(), views[chosen].tolist(), strict=True))


class InOrder(Sampler[list[tuple[int, int]]]):
    """All rows once, in order, plain view; with several processes, this one's share of them."""

    def __init__(self, rows: int, batch_size: int):
        self.rows, self.batch_size = together.own_share(rows), batch_size

    def __len__(self) -> int:
        return -(-len(self.rows) // self.batch_size)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        for start in range(0, len(self.rows), self.batch_size):
            yield [(row, PLAIN_VIEW) for row in self.rows[start : start + self.batch_size]]


class CachedMaps(Dataset[Any]):
    """Feature maps of a frozen backbone: (rows, views, channels, H, W). With `pooled`, H = W = 1.

    `images`: the rows' names, for errors.
    """

    def __init__(self, maps: np.ndarray, pooled: bool = False, images: Sequence[str] | None = None):
        self.maps = pool_maps(maps) if pooled else maps
        self.images = images
        self.source = maps

    def __len__(self) -> int:
        return len(self.maps)

    def __getitems__(self, chosen: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], Tensor]:
        views = self.maps.shape[1]
        maps = np.stack([self.maps[row, view % views] for row, view in chosen])  # (B, channels, H, W)
        read = torch.from_numpy(maps).float()
        if not torch.isfinite(read.sum()):  # 16-bit numbers cannot add up to infinity
            rows = [row for row, _ in chosen]
            names = [f"row {row}" if self.images is None else self.images[row] for row in rows]
            require_cached(read.numpy(), names, self.source)
        return list(chosen), read


class ViewedImages(Dataset[Any]):
    """Images opened and transformed on the fly; each view's seed decides its crop and flip."""

    def __init__(
        self,
        images: Sequence[str],
        source: ImageSource,
        plain: Callable[..., Tensor],
        augmented: Callable[..., Tensor],
    ):
        self.images, self.source, self.plain, self.augmented = images, source, plain, augmented

    def __len__(self) -> int:
        return len(self.images)

    def __getitems__(self, chosen: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], Tensor]:
        return list(chosen), torch.stack([self._view(row, view) for row, view in chosen])

    def _view(self, row: int, view: int) -> Tensor:
        image = self.source.open(self.images[row])
        if view == PLAIN_VIEW:
            return self.plain(image)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(view)
            return self.augmented(image)


def pool_maps(maps: np.ndarray, rows_at_once: int = 512) -> np.ndarray:
    """(n, views, channels, H, W) → (n, views, channels, 1, 1) float32: the mean over places."""
    parts = [
        maps[start : start + rows_at_once].astype(np.float32).mean((3, 4), keepdims=True)
        for start in range(0, len(maps), rows_at_once)
    ]
    empty = np.zeros((0, *maps.shape[1:3], 1, 1), np.float32)  # there may be no test images
    return np.concatenate([empty, *parts])


class Collate:
    """Puts inputs and labels together into a `Batch`."""

    def __init__(self, known: KnownLabels, seed: int):
        self.known, self.seed = known, seed

    def __call__(self, item: Any) -> Batch:
        """`item`: ([(row, view), ...], inputs), as a data set's `__getitems__` gives it."""
        chosen, inputs = item
        rows = np.array([row for row, _ in chosen])
        labels = self.known.labels[rows]
        targets, weights = weak_absents(labels, self.known, seed=[self.seed, *(view for _, view in chosen[:2])])
        image, category = np.nonzero(labels == 1)
        holders, places = np.unique(image, return_inverse=True)
        return Batch(
            inputs=inputs,
            labels=torch.from_numpy(labels).float(),
            image_index=torch.from_numpy(rows),
            targets=torch.from_numpy(targets).float(),
            weights=None if weights is None else torch.from_numpy(weights),
            held_out=_rows_of(self.known.held_out, rows),
            folds=_rows_of(self.known.folds, rows),
            pair_images=torch.from_numpy(image),
            pair_given=torch.from_numpy(category),
            pair_holders=torch.from_numpy(holders),
            pair_places=torch.from_numpy(places),
        )


def _rows_of(array: np.ndarray | None, rows: np.ndarray) -> Tensor | None:
    return None if array is None else torch.from_numpy(array[rows]).float()


def weak_absents(
    labels: np.ndarray, known: KnownLabels, seed: Sequence[int]
) -> tuple[np.ndarray, np.ndarray | None]:
    """(B, C) labels → (targets, weights): unknown entries that are taken as absent, and how much each counts.

    `assume_absent` takes all of them with one weight; `sample_absent` draws N per known present one of the batch.
    """
    if known.assume_absent:
        unknown = labels == 0
        return np.where(unknown, -1, labels), np.where(unknown, known.assume_absent, 1.0).astype(np.float32)
    if known.sample_absent:
        drawn = _drawn_unknown(labels, known.sample_absent * int((labels == 1).sum()), seed)
        weights = np.where(drawn, known.sample_absent_weight, 1.0).astype(np.float32)
        return np.where(drawn, -1, labels), weights
    return labels, None


def _drawn_unknown(labels: np.ndarray, wanted: int, seed: Sequence[int]) -> np.ndarray:
    candidates = np.flatnonzero(labels.ravel() == 0)
    chosen = np.random.default_rng(list(seed)).permutation(candidates)[:wanted]
    drawn = np.zeros(labels.size, dtype=bool)
    drawn[chosen] = True
    return drawn.reshape(labels.shape)


def train_loader(
    dataset: Dataset[Any], known: KnownLabels, batch_size: int, seed: int, workers: int
) -> DataLoader[Batch]:
    rows = len(dataset)  # type: ignore[arg-type]
    order = EpochOrder(rows, shareable(batch_size, rows), seed)
    return DataLoader(
        dataset,
        batch_sampler=order,
        collate_fn=Collate(known, seed),
        num_workers=workers,
        generator=torch.Generator(),  # else starting an epoch's workers would draw from the model's random numbers
    )


def shareable(batch_size: int, rows: int) -> int:
    """Images a step, at most all of them: as many for every process."""
    count = together.size()
    if batch_size % count:
        raise UserError(
            f"batch_size={batch_size}: {count} processes cannot share it evenly; choose a multiple of {count}"
        )
    if rows < count:
        raise UserError(f"{rows} training images are too few for {count} processes")
    return min(batch_size, rows - rows % count)


def walk_loader(dataset: Dataset[Any], known: KnownLabels, batch_size: int, workers: int) -> DataLoader[Batch]:
    """All rows once, unaugmented."""
    order = InOrder(len(dataset), batch_size)  # type: ignore[arg-type]
    return DataLoader(
        dataset,
        batch_sampler=order,
        collate_fn=Collate(known, 0),
        num_workers=workers,
        generator=torch.Generator(),
    )
