"""From a category's graph state and feature to its score (SPEC 2)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from fewtags.nn.dropout import Dropout

SMALL_START = 0.1
"""Scale of the graph branch's first scores when it is added to a shortcut."""


def linear_layer(size: int, categories: int) -> nn.Linear:
    """A linear classifier (B, size) → (B, categories) that starts at logits of 0: all undecided."""
    layer = nn.Linear(size, categories)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


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
