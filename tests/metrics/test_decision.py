import numpy as np
import pytest

from fewtags.metrics.decision import PRIOR_POSITIVES, fit_decision_thresholds
from tests.oracles import metrics_f1 as oracle


def logit(p):
    return np.log(p / (1 - p))


def calibrated(shifts, n=4000, seed=0):
    """Probabilities whose categories differ in where they should be cut."""
    random = np.random.default_rng(seed)
    truth = random.random((n, len(shifts))) < 0.3
    scores = random.normal(size=truth.shape) + 2.0 * truth + np.array(shifts)
    return 1 / (1 + np.exp(-scores)), np.where(truth, 1, -1)


def f1_at(probabilities, labels, threshold):
    return oracle.precision_recall_f1((probabilities >= threshold)[:, None].tolist(), labels[:, None].tolist())[
        "OF1"
    ]


def test_with_many_labels_each_category_gets_its_own_best():
    probabilities, labels = calibrated([-3.0, 0.0, 1.0], n=3000)
    thresholds = fit_decision_thresholds(probabilities, labels)
    assert (np.diff(thresholds) > 0.1).all()
    for c in range(3):
        reached = f1_at(probabilities[:, c], labels[:, c], thresholds[c])
        assert reached > oracle.best_f1(probabilities[:300, c].tolist(), labels[:300, c].tolist()) - 0.06
        assert reached > f1_at(probabilities[:, c], labels[:, c], thresholds[(c + 1) % 3])


def test_one_category_alone_is_at_the_exact_optimum():
    probabilities, labels = calibrated([0.5], n=400)
    threshold = fit_decision_thresholds(probabilities, labels)[0]
    assert f1_at(probabilities[:, 0], labels[:, 0], threshold) == pytest.approx(
        oracle.best_f1(probabilities[:, 0].tolist(), labels[:, 0].tolist())
    )


def test_the_fewer_positives_the_closer_to_the_pooled_threshold():
    probabilities, labels = calibrated([-2.0, 2.0], n=2000)
    scarce = labels.copy()
    keep = np.flatnonzero(labels[:, 1] == 1)[:5]
    scarce[:, 1] = np.where(labels[:, 1] == 1, 0, labels[:, 1])
    scarce[keep, 1] = 1
    none = np.where(scarce == 1, np.array([1, 0]), scarce)
    own, few, pooled = (fit_decision_thresholds(probabilities, y)[1] for y in (labels, scarce, none))
    assert pooled < few < own


def test_the_shrinkage_weighs_the_pooled_threshold_as_twenty_positives():
    """The second category has one present and one absent label: its own cut is midway between them."""
    probabilities, labels = calibrated([0.0, 0.0], n=500)
    labels[:, 1] = 0
    labels[:2, 1] = 1, -1
    probabilities[:2, 1] = 0.999, 0.99
    pooled, shrunken = (
        fit_decision_thresholds(probabilities, y)[1] for y in (np.where([True, False], labels, 0), labels)
    )
    own = (logit(0.999) + logit(0.99)) / 2
    expected = (own + PRIOR_POSITIVES * logit(pooled)) / (1 + PRIOR_POSITIVES)
    assert logit(shrunken) == pytest.approx(expected, abs=0.1)


def test_a_half_when_nothing_is_known():
    probabilities = np.random.default_rng(0).random((5, 3))
    for labels in (np.zeros((5, 3)), np.full((5, 3), -1), np.ones((5, 3))):
        assert fit_decision_thresholds(probabilities, labels).tolist() == [0.5] * 3


def test_unknown_entries_do_not_matter():
    probabilities, labels = calibrated([0.0, 1.0], n=200)
    labels[::2] = 0
    changed = probabilities.copy()
    changed[::2] = 0.123
    assert (fit_decision_thresholds(probabilities, labels) == fit_decision_thresholds(changed, labels)).all()


def test_certain_probabilities_stay_finite():
    thresholds = fit_decision_thresholds(np.array([[0.0], [1.0]]), np.array([[-1], [1]]))
    assert thresholds == pytest.approx([0.5])
