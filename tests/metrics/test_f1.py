import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score

from fewtags.metrics.f1 import above, counts, precision_recall_f1, top
from tests.oracles import metrics_f1 as oracle


def made_up(seed, n=80, categories=7, unknown=0.3):
    random = np.random.default_rng(seed)
    probabilities = np.round(random.random((n, categories)), 1)
    labels = np.where(random.random((n, categories)) < 0.3, 1, -1)
    labels[random.random((n, categories)) < unknown] = 0
    labels[:, 0] = -np.abs(labels[:, 0])
    probabilities[:, 1] = 0.2
    return probabilities, labels.astype(np.int8)


@pytest.mark.parametrize("seed", [0, 1])
def test_equal_to_plain_loops_at_a_half_and_for_the_top_three(seed):
    probabilities, labels = made_up(seed)
    for ours, plain in [
        (above(probabilities), (probabilities >= 0.5).tolist()),
        (top(probabilities, 3), oracle.top(probabilities.tolist(), 3)),
    ]:
        assert ours.tolist() == plain
        expected = oracle.precision_recall_f1(plain, labels.tolist())
        assert precision_recall_f1(ours, labels) == pytest.approx(expected)


def test_equal_to_scikit_learn_when_all_is_known():
    probabilities, labels = made_up(2, unknown=0)
    predicted, scored = above(probabilities), slice(1, None)
    found = precision_recall_f1(predicted, labels)
    assert found["OP"] == pytest.approx(precision_score(labels == 1, predicted, average="micro"))
    assert found["OF1"] == pytest.approx(f1_score(labels == 1, predicted, average="micro"))
    options = {"average": "macro", "zero_division": 0}
    assert found["CP"] == pytest.approx(precision_score((labels == 1)[:, scored], predicted[:, scored], **options))
    assert found["CR"] == pytest.approx(recall_score((labels == 1)[:, scored], predicted[:, scored], **options))


def test_category_f1_is_the_harmonic_mean_of_cp_and_cr_not_a_mean_of_f1s():
    predicted = np.array([[1, 0], [1, 0], [0, 1], [0, 0]], dtype=bool)
    labels = np.array([[1, 1], [-1, 1], [-1, 1], [-1, 1]])
    found = precision_recall_f1(predicted, labels)
    assert (found["CP"], found["CR"]) == (0.75, 0.625)
    assert found["CF1"] == pytest.approx(2 * 0.75 * 0.625 / 1.375)
    assert found["CF1"] != pytest.approx(f1_score(labels == 1, predicted, average="macro"))


def test_a_category_without_prediction_counts_as_zero_precision():
    labels = np.array([[1, 1], [1, -1]])
    predicted = np.array([[True, False], [True, False]])
    assert precision_recall_f1(predicted, labels)["CP"] == 0.5


def test_unknown_entries_count_nowhere():
    probabilities, labels = made_up(3)
    flipped = np.where(labels == 0, ~above(probabilities), above(probabilities))
    assert precision_recall_f1(flipped, labels) == precision_recall_f1(above(probabilities), labels)
    assert counts(flipped, labels).present.tolist() == (labels == 1).sum(axis=0).tolist()


def test_nothing_predicted_and_nothing_known_are_zero():
    labels = np.array([[1, -1]])
    assert set(precision_recall_f1(np.zeros((1, 2), bool), labels).values()) == {0.0}
    assert set(precision_recall_f1(np.ones((1, 2), bool), np.zeros((1, 2))).values()) == {0.0}


def test_top_takes_exactly_three_and_the_first_of_equals():
    assert top(np.full((2, 5), 0.3)).tolist() == [[True, True, True, False, False]] * 2
    assert top(np.array([[0.1, 0.9]])).all()


def test_top_can_leave_out_improbable_ones_as_the_released_code():
    assert top(np.array([[0.9, 0.6, 0.4, 0.1]]), at_least=0.5).tolist() == [[True, True, False, False]]


def test_thresholds_may_differ_between_categories():
    probabilities = np.array([[0.4, 0.4]])
    assert above(probabilities, np.array([0.3, 0.5])).tolist() == [[True, False]]


def test_one_category_counts_as_the_first_of_two():
    predicted, labels = np.array([[True], [True], [False], [True]]), np.array([[1], [-1], [1], [0]])
    alone = counts(predicted, labels)
    beside = counts(np.repeat(predicted, 3, axis=1), np.repeat(labels, 3, axis=1))
    assert [values.tolist() for values in alone] == [[1], [2], [2]]
    assert [values.tolist() for values in beside] == [[1] * 3, [2] * 3, [2] * 3]
