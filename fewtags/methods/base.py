"""What a method is to the trainer: scores, named loss terms, and a few hooks. The trainer names no method."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fewtags.batch import Batch
from fewtags.losses.partial_bce import partial_bce
from fewtags.nn.backbone_classes import BackboneClasses
from fewtags.recipe import Recipe


@dataclass(frozen=True)
class Setting:
    """What a method is built from. It learns from `labels` and from nothing else."""

    recipe: Recipe
    categories: tuple[str, ...]
    channels: int
    """Channels of the backbone's map."""
    labels: Tensor
    """(images, categories) of -1, 0, +1; or `SparseLabels`, which are counted without a dense table."""
    word_vectors: Tensor | None = None
    """(categories, word size), or None to learn them."""
    classes: BackboneClasses | None = None
    """What the backbone was trained to tell apart, if its map says so."""


@dataclass(frozen=True)
class Moment:
    """Where training is: decides warm-up and ramps."""

    epoch: int
    """From 0."""
    progress: float
    """Epochs done, with the running one's share."""


@dataclass
class Step:
    """What a method makes of a batch: loss terms by name, and the pseudo labels it chose, by module."""

    terms: dict[str, Tensor]
    proposals: dict[str, Tensor] = field(default_factory=dict)
    """module → (B, C) bool, True only where the label is unknown."""


@dataclass(frozen=True)
class ParameterGroup:
    name: str
    parameters: list[nn.Parameter]
    lr: float
    decay: bool = True
    scheduled: bool = True
    """False: a constant learning rate, and no gradient clipping."""


Batches = Callable[[], Iterable[tuple[Batch, dict[str, Tensor]]]]
"""Walks all training images once, unaugmented and without gradient: (batch, the method's outputs)."""


OF_HST_ALONE = frozenset(
    {
        "own_share",
        "plain_beside",
        "discriminant_share",
        "discriminant_classes",
        "plausible_share",
        "cross_evidence",
    }
)


class Method(nn.Module):
    """A system of the paper. Subclasses wire modules together in `forward` and name their terms in `losses`."""

    summary: ClassVar[str]
    """One line for `fewtags methods`."""
    settings: ClassVar[dict[str, Any]] = {}
    """Recipe settings that are this method's definition."""
    not_read: ClassVar[frozenset[str]] = OF_HST_ALONE
    """Recipe settings that change nothing of it: runs that differ in these alone are the same."""
    uses_map = True
    """False: only the pooled map is read, so that a cached one may be pooled once."""
    modules_with_proposals: tuple[str, ...] = ()
    """Which parts make pseudo labels: their counts are logged under these names."""

    def __init__(self, setting: Setting):
        super().__init__()
        self.recipe = setting.recipe
        self.categories = setting.categories

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        """(B, channels, H, W) → "logits" (B, C), and what else the method needs."""
        raise NotImplementedError

    def losses(self, outputs: dict[str, Tensor], batch: Batch, moment: Moment) -> Step:
        return Step({"known": self.classification(outputs["logits"], batch)})

    def classification(self, logits: Tensor, batch: Batch) -> Tensor:
        """ℓ of SPEC 6 on the known labels (and weak absents)."""
        return partial_bce(logits, batch.targets, self.recipe.known_normalization, batch.weights)

    def pseudo_loss(self, logits: Tensor, batch: Batch, proposed: Tensor) -> Tensor:
        """ℓ(y ∪ ŷ), or ℓ(ŷ) alone with `pseudo_normalization: own`."""
        if self.recipe.pseudo_normalization == "own":
            return partial_bce(logits, proposed.to(logits.dtype), self.recipe.known_normalization)
        targets = torch.where(proposed, 1.0, batch.targets)
        weights = None if batch.weights is None else torch.where(proposed, 1.0, batch.weights)
        return partial_bce(logits, targets, self.recipe.known_normalization, weights)

    def loss_weights(self, moment: Moment) -> dict[str, float]:
        """What each named term counts; 1 where nothing is said."""
        return {}

    def parameter_groups(self) -> list[ParameterGroup]:
        return [ParameterGroup("head", list(self.parameters()), self.recipe.head_lr)]

    def before_training(self, batches: Callable[[], Iterable[Batch]]) -> None:
        """Called before the first epoch; `batches` walks all training images once, unaugmented."""

    def wants_walk(self, epoch: int) -> bool:
        """Whether `after_epoch` has to see all training images after this epoch."""
        return False

    def after_epoch(self, epoch: int, batches: Batches) -> None:
        """Called after each epoch for which `wants_walk` said yes."""

    def after_step(self) -> None:
        """Called after each optimiser step."""

    def status(self) -> dict[str, float]:
        """Numbers for the log and the progress bar, such as thresholds."""
        return {}
