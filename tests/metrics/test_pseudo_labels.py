import math

import numpy as np
import pytest

from fewtags.metrics.pseudo_labels import score_pseudo_labels, within_reach
from tests.oracles import metrics_f1 as oracle


def made_up(seed, n=60, categories=8):
    random = np.random.default_rng(seed)
    truth = np.where(random.random((n, categories)) < 0.3, 1, -1)
    truth[random.random((n, categories)) < 0.1] = 0
    known = np.where(random.random((n, categories)) < 0.2, truth, 0)
    filled = random.random((n, categories)) < 0.2
    return known, filled, truth


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equal_to_plain_loops(seed):
    known, filled, truth = made_up(seed)
    score = score_pseudo_labels(known, filled, truth)
    assert score._counts() == oracle.pseudo_label_counts(known.tolist(), filled.tolist(), truth.tolist())
    assert score.precision == score.right / score.judged
    assert score.recall == score.right / score.hidden_present
    assert score.ceiling == score.reachable / score.hidden_present


def test_small_example():
    known = np.array([[1, 0, 0, -1], [0, 0, 0, -1]])
    truth = np.array([[1, 1, -1, -1], [1, 1, -1, -1]])
    filled = np.array([[1, 1, 1, 1], [1, 0, 0, 0]])
    score = score_pseudo_labels(known, filled, truth)
    assert (score.made, score.right, score.hidden_present, score.reachable) == (3, 2, 3, 1)
    assert score.precision == pytest.approx(2 / 3)
    assert score.ceiling == pytest.approx(1 / 3)


def test_without_truth_nothing_is_judged():
    known, filled, truth = made_up(3)
    score = score_pseudo_labels(known, filled, np.zeros_like(truth))
    assert score.made > 0
    assert score.judged == score.right == 0
    assert math.isnan(score.precision)
    assert math.isnan(score.recall)


def test_all_known_leaves_nothing_to_fill():
    score = score_pseudo_labels(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2)))
    assert score._counts() == (0, 0, 0, 0, 0)


def test_batches_add_up_to_the_epoch():
    known, filled, truth = made_up(4)
    parts = [score_pseudo_labels(known[i::2], filled[i::2], truth[i::2]) for i in range(2)]
    assert parts[0] + parts[1] == score_pseudo_labels(known, filled, truth)


def test_a_label_does_not_reach_itself():
    assert within_reach(np.array([[1, 0], [1, 1]])).tolist() == [[False, True], [True, True]]
