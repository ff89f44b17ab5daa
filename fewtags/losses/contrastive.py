"""Contrastive loss between images, per category (L_cst, SPEC 4)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from fewtags.losses.partial_bce import batch_ratio
from fewtags.processes.together import rank

SMALLEST_NORM = 1e-6
"""Shorter vectors are not blown up to unit length: their gradient would explode."""


def contrastive(
    features: Tensor,
    labels: Tensor,
    partners: Tensor | None = None,
    partner_labels: Tensor | None = None,
    absent_pairs: Literal["ignore", "include"] = "ignore",
    whole: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Features (B, C, D), labels (B, C), partners (C, Q, D) and their labels (C, Q) (0: empty slot) → scalar.

    Over pairs of images and categories, with s the cosine of the two features of that category:
    ½·mean(1 - s | both present) + ½·mean(1 + s | one present, one absent); a kind without pairs adds 0.
    With `absent_pairs="include"` pairs of two absents join the second kind (the paper's "otherwise").

    Two images of the batch make one pair (m < n), as do an image and a partner. Pairs of two partners, which
    have no gradient, are left out. `whole`: features and labels of the batch of all processes, if this one has
    only B images of it; it then takes the pairs whose first image is its own.
    """
    own = unit(features).transpose(0, 1)  # (C, B, D)
    own_labels = labels.transpose(0, 1)  # (C, B)
    others, other_labels = own, own_labels
    if whole is not None:
        others, other_labels = unit(whole[0]).transpose(0, 1), whole[1].transpose(0, 1)
    if partners is not None and partner_labels is not None:
        others = torch.cat([others, unit(partners).to(own.dtype)], dim=1)  # (C, B + Q, D)
        other_labels = torch.cat([other_labels, partner_labels.to(labels.dtype)], dim=1)
    cosines = torch.bmm(own, others.transpose(1, 2)).float()  # (C, B, B + Q)
    first = 0 if whole is None else rank() * len(features)
    alike, unlike = _pairs(own_labels, other_labels, absent_pairs == "include", first)
    pull = batch_ratio(((1 - cosines) * alike).sum(), alike.sum())
    push = batch_ratio(((1 + cosines) * unlike).sum(), unlike.sum())
    return (pull + push) / 2


def _pairs(own: Tensor, others: Tensor, absent_pairs: bool, place: int = 0) -> tuple[Tensor, Tensor]:
    """Labels (C, B) and (C, B + Q), the first B the same → pairs to pull, pairs to push, (C, B, B + Q).

    `place`: where among the others the own ones begin.
    """
    once = torch.ones(own.shape[1], others.shape[1], dtype=torch.bool, device=own.device).triu(1 + place)
    first, second = own.unsqueeze(2), others.unsqueeze(1)
    alike = (first == 1) & (second == 1) & once
    unlike = (first * second == -1) & once
    if absent_pairs:
        unlike = unlike | ((first == -1) & (second == -1) & once)
    return alike, unlike


def unit(vectors: Tensor) -> Tensor:
    """Vectors (..., D) scaled to length 1 (those shorter than `SMALLEST_NORM` stay shorter)."""
    return functional.normalize(vectors, dim=-1, eps=SMALLEST_NORM)
