"""What a transfer module hands to its method, and how known labels teach its threshold."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.errors import UserError
from fewtags.processes.together import all_rows
from fewtags.recipe import Recipe
from fewtags.transfer.thresholds import Threshold


class Transferred(NamedTuple):
    loss: Tensor
    """The module's own loss (L_ist or L_cst)."""
    threshold_loss: Tensor | None
    """None where known labels do not teach the threshold."""
    proposed: Tensor
    """(B, C) bool: unknown entries whose evidence passes the threshold."""
    evidence: Tensor
    """(B, C)"""


def teaching_labels(batch: Batch, recipe: Recipe) -> Tensor:
    """(B, C) of -1, 0, +1: the labels that teach thresholds."""
    if recipe.threshold_labels != "holdout":
        return batch.targets
    if batch.held_out is None:
        raise UserError("threshold_labels: holdout needs labels held out of training; set holdout above 0")
    return batch.held_out


def crossfitted(evidence: list[Tensor], folds: Tensor | None) -> tuple[Tensor, Tensor]:
    """Evidence of each fold's module (B, C) → (for unknown entries, for known entries).

    An unknown entry gets the mean. A known one is scored by the module that was not taught by its fold.
    """
    if len(evidence) == 1:
        return evidence[0], evidence[0]
    assert folds is not None
    first, second = evidence
    return (first + second) / 2, torch.where(folds == 0, second, first)


def threshold_loss(threshold: Threshold, evidence: Tensor, labels: Tensor) -> Tensor | None:
    """L_dtl on evidence (B, C) and labels (B, C), 0 where not to be used."""
    threshold.start_slope(evidence.detach(), labels != 0)
    return threshold.loss(evidence, labels)


class KnownEvidence:
    """Collects evidence of entries whose label is known, on a walk over the training images."""

    def __init__(self) -> None:
        self.parts: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, evidence: Tensor, labels: Tensor) -> None:
        """Evidence (B, C) and labels (B, C), 0 where not to be used."""
        used = labels != 0
        category = torch.arange(labels.shape[1], device=labels.device).expand_as(labels)
        self.parts.append((evidence[used], labels[used], category[used]))

    def entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """(M,) evidence, labels and categories, of all processes."""
        evidence, labels, category = (all_rows(torch.cat(column)) for column in zip(*self.parts, strict=True))
        return evidence, labels, category
