"""What a tagger is worth: average precision, precision / recall / F1, and the quality of filled labels.

Labels are +1 present, 0 unknown, -1 absent; unknown entries are left out of every figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewtags.metrics.average_precision import average_precision, check_scores, voc_average_precision
from fewtags.metrics.decision import fit_decision_thresholds
from fewtags.metrics.f1 import above, precision_recall_f1, top
from fewtags.metrics.pseudo_labels import PseudoLabelScore, score_pseudo_labels

__all__ = [
    "PseudoLabelScore",
    "average_precision",
    "evaluate",
    "fit_decision_thresholds",
    "precision_recall_f1",
    "score_pseudo_labels",
    "voc_average_precision",
]


def evaluate(
    probabilities: np.ndarray, labels: np.ndarray, categories: Sequence[str] | None = None
) -> dict[str, Any]:
    """Every figure of SPEC 8 in percent, ready for metrics.json.

    probabilities (n, C) in [0, 1] (logits are refused, since 0.5 would mean something else); labels (n, C)
    of -1, 0, +1. `mAP` and `mAP_voc` average over the categories with present labels; the others are named
    in `categories_without_positives` and are None in `per_category`.
    """
    _check_probabilities(probabilities, labels)
    names = [str(index) for index in range(labels.shape[1])] if categories is None else list(categories)
    raw, voc = average_precision(probabilities, labels), voc_average_precision(probabilities, labels)
    at_half = precision_recall_f1(above(probabilities, 0.5), labels)
    at_three = precision_recall_f1(top(probabilities, 3), labels)
    return {
        "mAP": _mean_percent(raw),
        "mAP_voc": _mean_percent(voc),
        **{name: 100 * value for name, value in at_half.items()},
        **{f"{name}_top3": 100 * value for name, value in at_three.items()},
        "per_category": {n: None if np.isnan(a) else 100 * float(a) for n, a in zip(names, raw, strict=True)},
        "categories_without_positives": [n for n, a in zip(names, raw, strict=True) if np.isnan(a)],
    }


def _check_probabilities(probabilities: np.ndarray, labels: np.ndarray) -> None:
    check_scores(probabilities, labels)
    if probabilities.size and (probabilities.min() < 0 or probabilities.max() > 1):
        raise ValueError("probabilities must lie in [0, 1]; were logits passed?")


def _mean_percent(values: np.ndarray) -> float | None:
    """None when no category could be scored: JSON has no NaN."""
    return None if np.isnan(values).all() else 100 * float(np.nanmean(values))
