"""Partial binary cross-entropy ℓ (SPEC 6): known entries teach, unknown ones do not exist."""

from __future__ import annotations

from typing import Literal

from torch import Tensor
from torch.nn import functional

from fewtags.processes.together import size, total

Normalization = Literal["batch", "image", "categories"]


def partial_bce(
    logits: Tensor,
    labels: Tensor,
    normalization: Normalization = "batch",
    weights: Tensor | None = None,
) -> Tensor:
    """Logits (B, C), labels (B, C) of -1, 0, +1, weights (B, C) ≥ 0 or None → scalar.

    Σ w·[-log σ(x) if y = +1, -log σ(-x) if y = -1], divided by

    - "batch": Σ w over the batch's known entries (as released);
    - "image": Σ w over each image's known entries, then the mean over images (the paper's equation);
    - "categories": B·C, whatever is known.

    Nothing known: a zero that still has a graph.
    """
    return normalized(elementwise_bce(logits, labels), entry_weights(labels, weights), normalization)


def entry_weights(labels: Tensor, weights: Tensor | None) -> Tensor:
    """Labels (B, C), weights (B, C) or None → (B, C): what each entry counts, 0 where the label is unknown."""
    known = (labels != 0).float()
    return known if weights is None else known * weights


def normalized(losses: Tensor, weights: Tensor, normalization: Normalization) -> Tensor:
    """Elementwise losses (B, C), weights (B, C), 0 where not to be used → scalar, as `partial_bce` divides."""
    losses = weights * losses
    if normalization == "categories":
        return losses.sum() / max(losses.numel(), 1)
    if normalization == "image":
        return safe_ratio(losses.sum(1), weights.sum(1)).sum() / max(len(losses), 1)
    return batch_ratio(losses.sum(), weights.sum())


def elementwise_bce(logits: Tensor, labels: Tensor) -> Tensor:
    """-log σ(x) where y = +1, -log σ(-x) where y = -1, exactly 0, without gradient, where y = 0."""
    unknown = labels == 0
    # Masked before the loss, not after: a non-finite logit at an unknown entry must not reach the gradient.
    known_logits = logits.masked_fill(unknown, 0)
    losses = functional.binary_cross_entropy_with_logits(
        known_logits, (labels > 0).to(logits.dtype), reduction="none"
    )
    return losses.masked_fill(unknown, 0)


def safe_ratio(part: Tensor, count: Tensor) -> Tensor:
    """part / count, and part itself (a zero with its graph) where nothing was counted."""
    return part / count.masked_fill(count == 0, 1)


def batch_ratio(part: Tensor, count: Tensor) -> Tensor:
    """Σ part / Σ count over the whole batch, of which each process has a share: the mean of what they return.

    DDP averages over processes, so that gradients become those of one process with the whole batch.
    """
    return safe_ratio(part, count) if size() == 1 else safe_ratio(size() * part, total(count))
