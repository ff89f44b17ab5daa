"""A classifier's own confident predictions as present labels, decided on the logits of the running step."""

from __future__ import annotations

import torch
from torch import Tensor

from fewtags.transfer.thresholds import pseudo_labels


@torch.no_grad()
def own_predictions(logits: Tensor, labels: Tensor, confidence: float) -> Tensor:
    """Logits (B, C), labels (B, C) of -1, 0, +1 → (B, C) bool: unknown, and σ(logit) ≥ confidence."""
    return pseudo_labels(labels, torch.sigmoid(logits) >= confidence).bool()
