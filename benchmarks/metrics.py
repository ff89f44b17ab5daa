"""All metrics of a test set as large as COCO's: `python -m benchmarks.metrics`."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.metrics import average_precision_score

from benchmarks.record import Figure, alternating, record
from benchmarks.workload import PRESENT
from fewtags.metrics import evaluate

IMAGES, CATEGORIES = 40_000, 80
RIVAL = "scikit-learn's average precision alone"


def fabricated(images: int = IMAGES, categories: int = CATEGORIES, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and labels (images, categories)."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random((images, categories)) < PRESENT, 1, -1).astype(np.int8)
    logits = rng.normal(2.0 * labels - 1, 1.5).astype(np.float32)
    return 1 / (1 + np.exp(-logits)), labels


def average_precisions(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """mAP in percent."""
    found = [average_precision_score(labels[:, c] == 1, probabilities[:, c]) for c in range(labels.shape[1])]
    return 100 * float(np.mean(found))


def figures(images: int = IMAGES, categories: int = CATEGORIES, rounds: int = 5) -> list[Figure]:
    given = fabricated(images, categories)
    contenders = {"ours": lambda: evaluate(*given)["mAP"], RIVAL: lambda: average_precisions(*given)}
    seconds, scores = alternating(contenders, rounds)
    assert abs(scores["ours"] - scores[RIVAL]) < 1e-6, scores
    what = f"every metric of {images:,} × {categories}"
    return [Figure("metrics", what, seconds["ours"], seconds[RIVAL], RIVAL, "s", 1.0)]


if __name__ == "__main__":
    record(figures())
    sys.exit(0)
