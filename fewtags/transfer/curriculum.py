"""Which unknown entries a classifier labels between two rounds of training (Durand et al. 2019).

Each strategy is a decision without gradient: logits (n, C) → int8 (n, C) of +1 (present), -1 (absent), 0 (left
unknown). `only_unknown` then drops what was known anyway.
"""

from __future__ import annotations

import torch
from torch import Tensor


@torch.no_grad()
def by_threshold(logits: Tensor, threshold: float) -> Tensor:
    """Present where p = σ(logit) ≥ threshold, absent where p ≤ 1 - threshold. At p = ½ = threshold: present."""
    present, absent = logits.sigmoid() >= threshold, (-logits).sigmoid() >= threshold
    return present.to(torch.int8) - (absent & ~present).to(torch.int8)


@torch.no_grad()
def by_positives(logits: Tensor, threshold: float) -> Tensor:
    """Present where p ≥ threshold; never absent."""
    return by_threshold(logits, threshold).clamp(min=0)


@torch.no_grad()
def by_agreement(first: Tensor, second: Tensor, threshold: float) -> Tensor:
    """Logits of two classifiers → what both of them decide by threshold."""
    decided = by_threshold(first, threshold)
    return torch.where(decided == by_threshold(second, threshold), decided, 0)


@torch.no_grad()
def by_proportion(logits: Tensor, unknown: Tensor, share: float) -> Tensor:
    """The surest share of all unknown (n, C) entries, greatest |logit| first, by the logit's sign."""
    sureness = logits.abs().masked_fill(~unknown, -1).flatten()
    chosen = sureness.argsort(descending=True, stable=True)[: round(share * int(unknown.sum()))]
    decided = torch.zeros_like(sureness, dtype=torch.int8)
    decided[chosen] = torch.where(logits.flatten()[chosen] >= 0, 1, -1).to(torch.int8)
    return decided.reshape(logits.shape)


def only_unknown(decided: Tensor, labels: Tensor) -> Tensor:
    """Decided (n, C), labels (n, C) of -1, 0, +1 → decided where the label is unknown, else 0."""
    return decided * (labels == 0)


def round_ends(epochs: int, rounds: int) -> list[int]:
    """After which epochs (counted from 1) a round ends and unknown entries are labelled; not after the last.

    Rounds are of about equal length, and of one epoch at least: there are never more of them than epochs.
    """
    rounds = min(rounds, epochs)
    return [number * epochs // rounds for number in range(1, rounds)]
