"""How often each category is present, by the known labels: right where labels are missing at random."""

from __future__ import annotations

import torch
from torch import Tensor

from fewtags.labels.sparse import value_count_by_category

PRIOR = 20.0
"""Known labels that the rate over all categories is worth in a category's own."""


def base_rates(labels: Tensor) -> Tensor:
    """Labels (n, C) of -1, 0, +1 → (C,) (present + s·r) / (known + s), r being the rate over all categories."""
    present, absent = (torch.as_tensor(value_count_by_category(labels, value)).double() for value in (1, -1))
    known = present + absent
    overall = present.sum() / known.sum().clamp(min=1)
    return ((present + PRIOR * overall) / (known + PRIOR)).float()
