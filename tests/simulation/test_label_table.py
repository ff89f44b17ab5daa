from __future__ import annotations

import numpy as np
import pytest

from fewtags.simulation.label_table import label_figures
from tests.oracles import label_table as oracle


def test_label_figures_equal_the_oracle():
    rng = np.random.default_rng(0)
    truth = np.where(rng.random((30, 5)) < 0.3, 1, -1)
    probability = np.clip(rng.normal(0.4 + 0.2 * truth, 0.2), 0, 1)
    decision = np.where(probability > 0.7, 1, np.where(probability < 0.2, -1, 0))
    for share in (0.0, 0.4, 1.0):
        known = np.where(rng.random(truth.shape) < share, truth, 0)
        found = label_figures(truth, known, probability, np.where(known == 0, decision, 0))
        expected = oracle.label_figures(truth.tolist(), known.tolist(), probability.tolist(), decision.tolist())
        assert found == pytest.approx(expected, nan_ok=True)
    assert found["label_accuracy"] == 100
    assert found["present_precision"] is None
