"""From probabilities to tags. No torch in here: a server of an exported model uses it too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tag:
    category: str
    probability: float


def chosen_tags(
    probabilities: np.ndarray,
    categories: Sequence[str],
    decision_thresholds: Sequence[float],
    top: int | None = None,
    threshold: float | None = None,
) -> list[Tag]:
    """(C,) probabilities → the tags that pass, most likely first.

    Without `top` and `threshold`, each category's own decision threshold decides.
    """
    order = np.argsort(-probabilities, kind="stable")
    least = np.array(decision_thresholds) if threshold is None else threshold
    passes = probabilities >= least if top is None or threshold is not None else np.ones_like(order, bool)
    chosen = [i for i in order if passes[i]][:top]
    return [Tag(categories[i], float(probabilities[i])) for i in chosen]
