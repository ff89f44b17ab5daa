"""Precision, recall and F1, overall (OP OR OF1) and averaged over categories (CP CR CF1), on known entries.

torchmetrics counts (its stat scores leave out ignored entries), the ratios are ours: its macro average
drops categories that it finds empty, and its macro F1 is a mean of F1s, while CF1 is the harmonic mean of
CP and CR.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

import fewtags.torchvision_ops  # noqa: F401  (first: torchmetrics imports torchvision)

# isort: split
from torchmetrics.functional.classification import multilabel_stat_scores

from fewtags.labels.table import PRESENT, UNKNOWN

IGNORED = -1


class Counts(NamedTuple):
    """Per category (C,), over known entries."""

    right: np.ndarray
    """Predicted and present."""
    predicted: np.ndarray
    present: np.ndarray


def above(probabilities: np.ndarray, threshold: float | np.ndarray = 0.5) -> np.ndarray:
    """(n, C) bool: what is predicted at a threshold, or at one per category (C,)."""
    return probabilities >= threshold


def top(probabilities: np.ndarray, k: int = 3, at_least: float = 0.0) -> np.ndarray:
    """(n, C) bool: the k most probable categories of each image; of equals, the first ones.

    They are chosen among all categories, since that is what the model says; those that are unknown are then
    not scored. The field's code keeps of the three only those with probability ≥ 0.5: `at_least=0.5`.
    """
    chosen = np.argsort(-probabilities, axis=1, kind="stable")[:, :k]
    predicted = np.zeros(probabilities.shape, dtype=bool)
    np.put_along_axis(predicted, chosen, True, axis=1)
    return predicted & (probabilities >= at_least)


def counts(predicted: np.ndarray, labels: np.ndarray) -> Counts:
    """predicted (n, C) bool, labels (n, C) of -1, 0, +1; unknown entries count nowhere."""
    target = np.where(labels == UNKNOWN, IGNORED, labels == PRESENT)
    columns = max(2, labels.shape[1])  # torchmetrics takes two labels at least: a lone one is counted twice
    table = multilabel_stat_scores(
        _at_least_two(predicted), _at_least_two(target), columns, average=None, ignore_index=IGNORED
    )
    right, wrong, _absent_right, _missed, present = table.numpy()[: labels.shape[1]].T
    return Counts(right, right + wrong, present)


def _at_least_two(columns: np.ndarray) -> torch.Tensor:
    wide = np.repeat(columns, 2, axis=1) if columns.shape[1] == 1 else columns
    return torch.from_numpy(wide.astype(np.int64))


def precision_recall_f1(predicted: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """OP OR OF1 CP CR CF1 as shares of 1.

    OP = Σ right / Σ predicted, OR = Σ right / Σ present; CP and CR average the same ratios over the
    categories with known present labels, a category without a prediction counting as precision 0; each F1 =
    2PR / (P + R). (The released code also counts one prediction for each category that has none, which
    lowers OP a little.)
    """
    right, predicted_count, present = counts(predicted, labels)
    scored = present > 0
    precision, recall = _ratio(right.sum(), predicted_count.sum()), _ratio(right.sum(), present.sum())
    category_precision = _mean(_ratio(right, predicted_count)[scored])
    category_recall = _mean(_ratio(right, present)[scored])
    return {
        "OP": float(precision),
        "OR": float(recall),
        "OF1": _harmonic_mean(float(precision), float(recall)),
        "CP": category_precision,
        "CR": category_recall,
        "CF1": _harmonic_mean(category_precision, category_recall),
    }


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, 0 where the whole is 0."""
    return np.asarray(part) / np.maximum(whole, 1)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _harmonic_mean(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0
