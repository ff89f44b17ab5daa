"""From a category's graph state and feature to its score (SPEC 2)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewtags.labels.base_rates import base_rates
from fewtags.nn.dropout import Dropout
from fewtags.processes.together import size, total
from fewtags.recipe import Recipe

IMAGES_REMEMBERED = 10_000
SMALL_START = 0.1
"""Scale of the graph branch's first scores when it is added to a shortcut."""


class PooledClassifier(nn.Linear):
    """Maps (B, channels, H, W), pooled to x → logits (B, C): W (x - mean) + b; W starts at 0.

    - b starts at `scores` (C,), such as the categories' base rates. From 0, W first learns what only b should say:
      the pooled map is positive everywhere, so every weight falls together to make all scores low.
    - `centred`: the mean of the maps seen in training is taken off. W then says how an image differs from others.
    - `peak`: so much of a score is that of the image's best place, the rest the mean over all places. A small
      thing fills one place of many.
    """

    mean: Tensor
    seen: Tensor
    """Images behind the mean, at most `IMAGES_REMEMBERED`."""
    category_axes: ClassVar = {"weight": (0,), "bias": (0,)}

    def __init__(self, channels: int, scores: Tensor, centred: bool, peak: float = 0.0):
        super().__init__(channels, len(scores))
        self.centred, self.peak = centred, peak
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("seen", torch.zeros(()))
        with torch.no_grad():
            self.weight.zero_()
            self.bias.copy_(scores)

    def forward(self, maps: Tensor) -> Tensor:
        pooled = maps.mean((2, 3))
        if self.centred and self.training and self.weight.requires_grad:
            self._remember(pooled.detach())
        scores = self.of_pooled(pooled)
        if not self.peak:
            return scores
        places = functional.conv2d(maps, self.weight[:, :, None, None])  # (B, C, H, W)
        return scores + self.peak * (places.amax((2, 3)) - places.mean((2, 3)))

    def of_pooled(self, pooled: Tensor) -> Tensor:
        """(B, channels) → logits (B, C), without the peak's share."""
        return super().forward(pooled - self.mean)

    @torch.no_grad()
    def _remember(self, pooled: Tensor) -> None:
        """The mean of all images seen; in the long run of the last ones, as a trained backbone's maps move on."""
        count = torch.full_like(self.seen, len(pooled) * size())
        self.seen.add_(count).clamp_(max=IMAGES_REMEMBERED)
        self.mean.lerp_(total(pooled.float().sum(0)) / count, count / self.seen)


def pooled_classifier(recipe: Recipe, channels: int, labels: Tensor, peak: float = 0.0) -> PooledClassifier:
    """The linear layer on the pooled map: plain's classifier, and the shortcut of others."""
    return PooledClassifier(channels, first_scores(recipe, labels), recipe.centre_pooled, peak)


def shortcut_of(recipe: Recipe, channels: int, labels: Tensor) -> PooledClassifier | None:
    """What networks with more to say add to their scores."""
    return pooled_classifier(recipe, channels, labels, recipe.shortcut_peak) if recipe.shortcut else None


def first_scores(recipe: Recipe, labels: Tensor) -> Tensor:
    """Labels (n, C) → logits (C,) to start from."""
    if recipe.first_scores == "undecided":
        return torch.zeros(labels.shape[1])
    return base_rate_logits(labels)


def base_rate_logits(labels: Tensor) -> Tensor:
    """Labels (n, C) of -1, 0, +1 → (C,) logits of the base rates.

    Without a known present or absent label of any category nothing is known of rates: 0, undecided.
    """
    rates = base_rates(labels)
    both = (rates > 0).any() & (rates < 1).any()
    return torch.where(both, torch.logit(rates), 0.0)


class CategoryClassifier(nn.Module):
    """States h and features f, (B, C, D) → logits (B, C): row_c · dropout(tanh(W [h_c, f_c] + b)) + bias_c.

    `rows` (C, hidden) given to `forward` take the place of the classifier's own.
    """

    category_axes: ClassVar = {"rows": (0,), "bias": (0,)}

    def __init__(self, categories: int, size: int, hidden: int = 1024, dropout: float = 0.0):
        super().__init__()
        self.join = nn.Linear(2 * size, hidden)
        self.dropout = Dropout(dropout)
        bound = hidden**-0.5
        self.rows = nn.Parameter(torch.empty(categories, hidden).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(categories))

    def forward(self, states: Tensor, features: Tensor, rows: Tensor | None = None) -> Tensor:
        rows = self.rows if rows is None else rows
        joined = torch.tanh(self.join(torch.cat([states, features], dim=-1)))  # (B, C, hidden)
        return (self.dropout(joined) * rows).sum(-1) + self.bias  # (B, C)

    @torch.no_grad()
    def start_small(self) -> None:
        """Scale the first scores down, so that a shortcut beside them leads at first."""
        self.rows.mul_(SMALL_START)

    @torch.no_grad()
    def start_at(self, scores: Tensor) -> None:
        """Scores (C,) that the first ones are about."""
        self.bias.copy_(scores)
