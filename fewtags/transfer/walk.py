"""Walks over all training images: after which epochs, and what the parts that remember features do on one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from torch import Tensor

from fewtags.batch import Batch
from fewtags.recipe import Recipe


class Walker(Protocol):
    """A part of a method that looks at all training images, unaugmented, to renew what it remembers."""

    def start_walk(self) -> None: ...

    def look(self, batch: Batch, outputs: dict[str, Tensor], adjacency: Tensor) -> None: ...

    def finish_walk(self, epoch: int) -> None: ...


def renewal_due(recipe: Recipe, epoch: int) -> bool:
    """Epoch (from 0) → whether it ends with a walk: epoch 1, every further warm-up epoch, then every few."""
    done, warmup = epoch + 1, recipe.warmup_epochs
    return done <= max(1, warmup) or (done - warmup) % recipe.prototype_every == 0


def walk(
    walkers: Sequence[Walker],
    epoch: int,
    batches: Iterable[tuple[Batch, dict[str, Tensor]]],
    adjacency: Tensor,
) -> None:
    """One pass for all of them: `batches` yields (batch, the method's outputs)."""
    for walker in walkers:
        walker.start_walk()
    for batch, outputs in batches:
        for walker in walkers:
            walker.look(batch, outputs, adjacency)
    for walker in walkers:
        walker.finish_walk(epoch)
