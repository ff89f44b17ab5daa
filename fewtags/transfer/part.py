"""What a transfer module hands to its method, and how known labels teach its threshold."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.recipe import Recipe
from fewtags.transfer.thresholds import LearnedThreshold


class Transferred(NamedTuple):
    loss: Tensor
    """The module's own loss (L_ist or L_cst)."""
    threshold_loss: Tensor
    proposed: Tensor
    """(B, C) bool: unknown entries whose evidence passes the threshold."""
    evidence: Tensor
    """(B, C)"""


def threshold_labels(batch: Batch, available: Tensor, recipe: Recipe) -> Tensor:
    """(B, C) of -1, 0, +1: the labels that teach the threshold, where there is evidence."""
    labels = batch.targets if recipe.threshold_labels != "holdout" else held_out_labels(batch)
    return torch.where(available, labels, torch.zeros_like(labels))


def held_out_labels(batch: Batch) -> Tensor:
    if batch.held_out is None:
        raise ValueError("threshold_labels: holdout needs held-out labels; set holdout above 0")
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


def threshold_loss(threshold: LearnedThreshold, evidence: Tensor, labels: Tensor, recipe: Recipe) -> Tensor:
    """L_dtl; unless `dtl_gradient: through`, it moves the threshold alone."""
    if recipe.dtl_gradient == "theta_only":
        evidence = evidence.detach()
    threshold.start_slope(evidence.detach(), labels != 0)
    return threshold.loss(evidence, labels)
