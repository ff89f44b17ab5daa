import time

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

import fewtags.torchvision_ops  # noqa: F401  (first: torchmetrics imports torchvision)

# isort: split
from torchmetrics.functional.classification import multilabel_average_precision

from fewtags.metrics.average_precision import average_precision, voc_average_precision
from tests.oracles import metrics_average_precision as oracle


def made_up(seed, n=200, categories=6, levels=None, unknown=0.3, dtype=np.float64):
    """Scores with ties (few levels), partly unknown labels, category 0 without positives."""
    random = np.random.default_rng(seed)
    scores = random.random((n, categories))
    if levels:
        scores = np.floor(scores * levels) / levels
    labels = np.where(random.random((n, categories)) < 0.2, 1, -1)
    labels[random.random((n, categories)) < unknown] = 0
    labels[:, 0] = np.minimum(labels[:, 0], 0)
    return scores.astype(dtype), labels.astype(np.int8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("levels", [None, 2, 7])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equal_to_scikit_learn_to_the_last_bit(seed, levels, dtype):
    scores, labels = made_up(seed, levels=levels, dtype=dtype)
    ours = average_precision(scores, labels)
    assert np.isnan(ours[0])
    for c in range(1, labels.shape[1]):
        known = labels[:, c] != 0
        assert ours[c] == average_precision_score(labels[known, c] == 1, scores[known, c])


@pytest.mark.parametrize("levels", [None, 3])
def test_both_equal_the_plain_loops(levels):
    scores, labels = made_up(3, n=60, levels=levels)
    for ours, plain in [
        (average_precision, oracle.average_precision),
        (voc_average_precision, oracle.voc_average_precision),
    ]:
        expected = [plain(scores[:, c].tolist(), labels[:, c].tolist()) for c in range(labels.shape[1])]
        np.testing.assert_allclose(ours(scores, labels), expected, atol=1e-12)


@pytest.mark.filterwarnings("ignore:No positive samples")
def test_agrees_with_torchmetrics_in_float32():
    scores, labels = made_up(4, levels=20)
    target = torch.from_numpy(np.where(labels == 0, -1, labels == 1).astype(np.int64))
    theirs = multilabel_average_precision(
        torch.from_numpy(scores), target, num_labels=labels.shape[1], average=None, ignore_index=-1
    )
    np.testing.assert_allclose(average_precision(scores, labels)[1:], theirs.numpy()[1:], atol=1e-5)


def test_unknown_entries_do_not_matter():
    scores, labels = made_up(5)
    other = np.where(labels == 0, 1 - scores, scores)
    np.testing.assert_array_equal(average_precision(scores, labels), average_precision(other, labels))
    np.testing.assert_array_equal(voc_average_precision(scores, labels), voc_average_precision(other, labels))


def test_order_of_the_images_does_not_matter():
    scores, labels = made_up(6, levels=3)
    shuffled = np.random.default_rng(0).permutation(len(scores))
    np.testing.assert_allclose(
        voc_average_precision(scores, labels), voc_average_precision(scores[shuffled], labels[shuffled])
    )


def test_worked_example_of_the_interpolation():
    """Ranked present, absent, absent, present, present: precision 1, 1/2, 1/3, 1/2, 3/5 → 1, 3/5, 3/5."""
    scores = np.array([[0.9], [0.8], [0.7], [0.6], [0.5]])
    labels = np.array([[1], [-1], [-1], [1], [1]])
    assert average_precision(scores, labels)[0] == pytest.approx((1 + 1 / 2 + 3 / 5) / 3)
    assert voc_average_precision(scores, labels)[0] == pytest.approx((1 + 3 / 5 + 3 / 5) / 3)


def test_interpolated_is_never_below_raw():
    scores, labels = made_up(7)
    assert (voc_average_precision(scores, labels) >= average_precision(scores, labels) - 1e-12)[1:].all()


def test_all_present_and_none_known():
    scores = np.random.default_rng(0).random((5, 2))
    labels = np.stack([np.ones(5), np.zeros(5)], axis=1)
    assert average_precision(scores, labels)[0] == 1.0
    assert np.isnan(average_precision(scores, labels)[1])


def test_no_images():
    assert np.isnan(average_precision(np.zeros((0, 3)), np.zeros((0, 3)))).all()


def test_large_sets_take_under_a_second():
    random = np.random.default_rng(0)
    scores = random.random((40_000, 80), dtype=np.float32)
    labels = np.where(random.random((40_000, 80)) < 0.04, 1, -1).astype(np.int8)
    start = time.process_time()  # not the clock: the machine may be busy with something else
    average_precision(scores, labels)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2)), r"scores \(2, 3\) and labels \(3, 2\)"),
        (np.zeros(3), np.zeros(3), "must both be"),
        (np.array([[0.1], [np.nan]]), np.ones((2, 1)), "1 rows of scores hold NaN, the first is row 1"),
        (np.zeros((2, 1)), np.array([[2], [0]]), "present"),
    ],
)
def test_what_cannot_be_scored_is_refused(scores, labels, message):
    with pytest.raises(ValueError, match=message):
        average_precision(scores, labels)
