"""Asymmetric loss (SPEC 3): easy absents count less, and those below a probability not at all."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def asymmetric(logits: Tensor, labels: Tensor, gamma_present: float, gamma_absent: float, shift: float) -> Tensor:
    """Logits and labels (-1, 0, +1) of one shape → elementwise loss of that shape, 0 where the label is 0.

    With p = σ(x) and p_m = max(p - shift, 0):

    - present: (1 - p)^γ₊ · -log p;
    - absent: p_m^γ₋ · -log(1 - p_m).

    The focusing weights (the powers) carry no gradient. Computed in float32 at least.
    """
    unknown = labels == 0
    logits = logits.masked_fill(unknown, 0)
    logits = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    present = labels > 0
    losses = torch.where(present, -functional.logsigmoid(logits), _absent_loss(logits, shift))
    with torch.no_grad():
        probability = torch.sigmoid(logits)
        shifted = (probability - shift).clamp(min=0)
        focus = torch.where(present, (1 - probability) ** gamma_present, shifted**gamma_absent)
    return (focus * losses).masked_fill(unknown, 0)


def _absent_loss(logits: Tensor, shift: float) -> Tensor:
    """-log(1 - max(σ(x) - shift, 0))."""
    if shift == 0:
        return -functional.logsigmoid(-logits)  # the logarithm of a sum that may round to 0 would be infinite
    return -torch.log((torch.sigmoid(-logits) + shift).clamp(max=1))
