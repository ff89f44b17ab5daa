"""Dropout from random bytes: on a CPU torch draws one slow number per element, this one per eight."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEVELS = 256
SMALLEST_INT64 = -(2**63)


class Dropout(nn.Module):
    """Set each element to 0 with probability `rate`, to the nearest 1/256; scale the others to keep the mean."""

    def __init__(self, rate: float):
        super().__init__()
        self.dropped_levels = round(rate * LEVELS)

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or not self.dropped_levels:
            return values
        kept = random_bytes(values) >= self.dropped_levels
        return values * kept.to(values.dtype).mul_(LEVELS / (LEVELS - self.dropped_levels))


def random_bytes(like: Tensor) -> Tensor:
    """Uniform random uint8 of the shape of `like`, from torch's generator."""
    words = torch.empty((like.numel() + 7) // 8, dtype=torch.int64, device=like.device)
    words.random_(SMALLEST_INT64, None)
    return words.view(torch.uint8)[: like.numel()].view(like.shape)
