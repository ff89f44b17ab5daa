"""How good a completed label table is, when the truth is at hand."""

from __future__ import annotations

import numpy as np

from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN


def label_figures(
    truth: np.ndarray, known: np.ndarray, probability: np.ndarray, decision: np.ndarray
) -> dict[str, float | None]:
    """All (n, C): truth of ±1; known labels, 0 where there is a hole; P(present) and the decision about holes.

    Twice, in percent: every hole filled with what is likelier (`label_accuracy`, `present_precision`,
    `present_recall`), and only those that `complete` decides, the others left unknown and so not right
    (`completeness`, `completed_accuracy`, `filled_precision`, `filled_recall`). Precision and recall are of the
    holes filled as present; None without any.
    """
    hole = known == UNKNOWN
    likelier = np.where(hole, np.where(probability >= 0.5, PRESENT, ABSENT), known)
    completed = np.where(hole, decision, known)
    precision, recall = present_quality(truth[hole], likelier[hole])
    filled_precision, filled_recall = present_quality(truth[hole], completed[hole])
    return {
        "label_accuracy": 100 * float((likelier == truth).mean()),
        "present_precision": precision,
        "present_recall": recall,
        "completeness": 100 * float((completed != UNKNOWN).mean()),
        "completed_accuracy": 100 * float((completed == truth).mean()),
        "filled_precision": filled_precision,
        "filled_recall": filled_recall,
    }


def present_quality(truth: np.ndarray, said: np.ndarray) -> tuple[float | None, float | None]:
    """(N,) → precision and recall of what is said to be present, in percent; None where it is of nothing."""
    right = int(((said == PRESENT) & (truth == PRESENT)).sum())
    return _percent(right, int((said == PRESENT).sum())), _percent(right, int((truth == PRESENT).sum()))


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
