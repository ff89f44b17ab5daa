"""Own scores as evidence: in every category the surest unknown entries, as many as should be present.

One confidence for all categories fills the frequent ones, whose scores are high, and none of the rare ones. Here
the known labels say how many present labels each category hides, and its cut is where a share of them would lie.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from fewtags.batch import Batch
from fewtags.labels.base_rates import base_rates
from fewtags.processes.together import size, total
from fewtags.transfer.thresholds import pseudo_labels

LOWEST, HIGHEST, BINS = -12.0, 12.0, 600
"""Scores are logits; beyond these they are counted in the outermost bins."""
REMEMBERED = 0.25
"""Share of the training images whose scores the cuts rest on: the last ones seen, as scores grow with training."""


class OwnTransfer(nn.Module):
    """Proposes unknown entries whose logit passes their category's cut.

    The cuts follow the scores seen while training; those of a classifier that learns no more are set once.
    """

    rates: Tensor
    """(C,) share of present labels, by the known ones."""
    counts: Tensor
    """(C, BINS): scores of unknown entries, the older the less they count."""
    cuts: Tensor
    """(C,) logits; out of reach until scores have been seen."""
    category_axes: ClassVar = {"rates": (0,), "counts": (0,), "cuts": (0,)}

    def __init__(self, share: float, labels: Tensor, follows: bool = True):
        """`labels` (n, C): the training labels; `follows`: whether the cuts follow the scores."""
        super().__init__()
        self.share, self.follows, self.memory = share, follows, max(1.0, REMEMBERED * len(labels))
        self.register_buffer("rates", base_rates(labels))
        self.register_buffer("counts", torch.zeros(len(self.rates), BINS))
        self.register_buffer("cuts", torch.full_like(self.rates, math.inf))

    @torch.no_grad()
    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Logits (B, C) → (B, C) bool: unknown entries that pass. What is seen while training moves the cuts."""
        if self.training and self.follows:
            images = len(logits) * size()
            seen = total(self._binned(logits.float(), batch.labels == 0))
            self.counts.mul_(max(0.0, 1 - images / self.memory)).add_(seen)
            self._cut()
        return self.passing(logits, batch.labels)

    def passing(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Logits and labels (n, C) → (n, C) bool."""
        return pseudo_labels(labels, logits >= self.cuts).bool()

    @torch.no_grad()
    def set_cuts(self, logits: Tensor, labels: Tensor) -> None:
        """By the scores (n, C) of training images with these labels (n, C), which all processes have."""
        self.counts.copy_(self._binned(logits, labels == 0))
        self._cut()

    def _binned(self, logits: Tensor, unknown: Tensor) -> Tensor:
        """(C, BINS): how many unknown entries have which score."""
        place = ((logits - LOWEST) / (HIGHEST - LOWEST) * BINS).long().clamp(0, BINS - 1)
        row = torch.arange(logits.shape[1], device=logits.device) * BINS
        counts = torch.zeros_like(self.counts)
        counts.view(-1).index_add_(0, (place + row).flatten(), unknown.flatten().to(counts))
        return counts

    def _cut(self) -> None:
        self.cuts.copy_(cuts_by_share(self.counts, self.share * self.rates))


def cuts_by_share(counts: Tensor, shares: Tensor) -> Tensor:
    """Scores counted in bins (C, BINS), shares (C,) → (C,) the lowest edges above which at most `shares` lie."""
    above = counts.flip(1).cumsum(1).flip(1)  # (C, BINS): scores in this bin or a higher one
    fits = above <= shares.unsqueeze(1) * counts.sum(1, keepdim=True)
    first = torch.where(fits.any(1), fits.int().argmax(1), BINS)
    return LOWEST + first * (HIGHEST - LOWEST) / BINS
