"""Cross-entropy weighted by how much of an image is known (Durand et al. 2019: "partial-BCE")."""

from __future__ import annotations

from torch import Tensor

from fewtags.losses.partial_bce import elementwise_bce, entry_weights

SLOPE, OFFSET, EXPONENT = -4.45, 5.45, 1.0
"""α, β, γ of g: an image of which all is known counts once, one of which a tenth is known 5 times per label."""


def proportional_bce(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Logits (B, C), labels (B, C) of -1, 0, +1, weights (B, C) ≥ 0 or None → scalar.

    Mean over images of g(p)/C · Σ_c w·BCE, p = Σ_c w / C the image's known share. Nothing known: a zero with a
    graph.
    """
    weights = entry_weights(labels, weights)
    losses = (weights * elementwise_bce(logits, labels)).mean(1)  # (B,)
    return (share_weight(weights.mean(1)) * losses).sum() / max(len(losses), 1)


def share_weight(share: Tensor) -> Tensor:
    """g(p) = α p^γ + β"""
    return SLOPE * share**EXPONENT + OFFSET
