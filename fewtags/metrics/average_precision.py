"""Average precision per category, raw and VOC-interpolated, on the entries that are known.

Written by hand rather than taken from torchmetrics: `MultilabelAveragePrecision` computes in float32 (it
differs from scikit-learn in the sixth digit), and neither library has the interpolated figure.
scikit-learn's own function takes no unknown entries and needs two calls and a warning filter per category.
"""

from __future__ import annotations

import numpy as np

from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN


def average_precision(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """AP_c = Σ_t (R_t - R_{t-1}) P_t over the distinct scores t of category c, falling.

    scores (n, C), higher means more surely present; labels (n, C) of -1, 0, +1, where 0 is left out.
    Returns (C,) float64, NaN for a category without a known present label. Bit-equal to scikit-learn's
    `average_precision_score` on the known entries, ties included (a tie is one step, whatever its order).
    """
    return _per_category(_area_raw, scores, labels)


def voc_average_precision(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """AP_c = Σ_t (R_t - R_{t-1}) max_{t' ≥ t} P_t': the area under the precision curve made non-increasing.

    The all-points interpolation of Pascal VOC 2010 and later (not the 11-point one of VOC 2007), which is
    what the code of SSGRL, SST, SARB and HST reports as mAP; never below the raw figure. Where they break
    ties by the order of the images, a tie here is one step, so the result does not depend on the order;
    without ties it is the same. Shapes and NaN as in `average_precision`.
    """
    return _per_category(_area_interpolated, scores, labels)


def check_scores(scores: np.ndarray, labels: np.ndarray) -> None:
    """Scores and labels of one shape (n, C), no NaN among the scores, labels of -1, 0, +1."""
    if scores.shape != labels.shape or scores.ndim != 2:
        raise ValueError(f"scores {scores.shape} and labels {labels.shape} must both be (images, categories)")
    if np.isnan(scores).any():
        rows = np.flatnonzero(np.isnan(scores).any(axis=1))
        raise ValueError(f"{len(rows)} rows of scores hold NaN, the first is row {rows[0]}")
    if not ((labels == PRESENT) | (labels == UNKNOWN) | (labels == ABSENT)).all():
        raise ValueError("labels must be +1 (present), 0 (unknown) or -1 (absent)")


def precision_recall(scores: np.ndarray, present: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and the score after each distinct score, highest first. scores, present: (n,)."""
    order = np.argsort(-scores)  # not stable, which is slower: ties are one step, so their order does not matter
    ranked = scores[order]
    last_of_tie = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    right = np.cumsum(present[order], dtype=np.float64)[last_of_tie]
    return right / (last_of_tie + 1.0), right / right[-1], ranked[last_of_tie]


def _per_category(area, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    check_scores(scores, labels)
    scores, labels = np.asfortranarray(scores), np.asfortranarray(labels)  # columns are read one by one
    result = np.full(labels.shape[1], np.nan)
    for category in np.flatnonzero((labels == PRESENT).any(axis=0)):
        known = labels[:, category] != UNKNOWN
        precision, recall, _ = precision_recall(scores[known, category], labels[known, category] == PRESENT)
        result[category] = area(precision, recall)
    return result


def _area_raw(precision: np.ndarray, recall: np.ndarray) -> float:
    """Summed from the lowest score up: the order in which scikit-learn adds, so that even rounding agrees."""
    steps = np.diff(np.append(recall[::-1], 0.0))
    return float(max(0.0, -np.sum(steps * precision[::-1])))


def _area_interpolated(precision: np.ndarray, recall: np.ndarray) -> float:
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall, prepend=0.0) * envelope))
