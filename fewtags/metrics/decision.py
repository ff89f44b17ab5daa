"""From probabilities to yes or no: one decision threshold per category, fitted on held-out labels.

A category's own best threshold is noisy when few of its present labels are held out, so it is drawn towards
the one threshold that is best for all categories together: in logits, `(n·own + m·pooled) / (n + m)` with n
the category's known present labels and m = 20. With none it is the pooled threshold; when nothing can be
fitted, 0.5.
"""

from __future__ import annotations

import numpy as np

from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN
from fewtags.metrics.average_precision import check_scores, precision_recall

UNDECIDED = 0.5
PRIOR_POSITIVES = 20.0
"""How many present labels the pooled threshold is worth."""
SMALLEST = 1e-7
"""Probabilities are kept this far from 0 and 1, so that their logits are finite."""


def fit_decision_thresholds(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(C,) thresholds that maximise F1 of `probability >= threshold`, each shrunk towards the pooled one.

    probabilities (n, C) in [0, 1]; labels (n, C) of -1, 0, +1 that the model was not trained on, 0 left out.
    """
    check_scores(probabilities, labels)
    logits = _logit(np.asarray(probabilities, dtype=np.float64))
    pooled = _best_cut(logits.ravel(), labels.ravel())
    if pooled is None:
        return np.full(labels.shape[1], UNDECIDED)
    cuts = [_shrunken(logits[:, category], labels[:, category], pooled) for category in range(labels.shape[1])]
    return 1.0 / (1.0 + np.exp(-np.array(cuts)))


def _shrunken(logits: np.ndarray, labels: np.ndarray, pooled: float) -> float:
    own = _best_cut(logits, labels)
    if own is None:
        return pooled
    positives = float((labels == PRESENT).sum())
    return (positives * own + PRIOR_POSITIVES * pooled) / (positives + PRIOR_POSITIVES)


def _best_cut(logits: np.ndarray, labels: np.ndarray) -> float | None:
    """The logit that maximises F1 = 2PR / (P + R): midway between the last score taken and the next one left.

    None without both a present and an absent label: F1 then says nothing about where to cut.
    """
    if not ((labels == PRESENT).any() and (labels == ABSENT).any()):
        return None
    known = labels != UNKNOWN
    precision, recall, scores = precision_recall(logits[known], labels[known] == PRESENT)
    f1 = 2 * precision * recall / np.maximum(precision + recall, np.finfo(float).tiny)
    best = int(np.argmax(f1))
    return float(scores[best : best + 2].mean())


def _logit(probabilities: np.ndarray) -> np.ndarray:
    inside = np.clip(probabilities, SMALLEST, 1 - SMALLEST)
    return np.log(inside) - np.log1p(-inside)
