import math

import numpy as np
import pytest
import torch

from fewtags.batch import Batch
from fewtags.labels.base_rates import base_rates
from fewtags.transfer.own_transfer import OwnTransfer, cuts_by_share
from tests.oracles import own_transfer as oracle


def batch_of(labels):
    nothing = torch.zeros(0)
    return Batch(nothing, labels, nothing, labels)


def test_base_rates_equal_a_loop():
    labels = np.random.default_rng(0).integers(-1, 2, (30, 5))
    assert base_rates(torch.from_numpy(labels)).tolist() == pytest.approx(oracle.base_rates(labels.tolist()), 1e-6)


def test_a_category_without_known_labels_has_the_rate_of_all():
    labels = torch.tensor([[1, -1, 0], [-1, -1, 0]])
    assert base_rates(labels)[2] == pytest.approx(0.25)


def test_no_known_label_at_all_gives_rate_zero():
    assert base_rates(torch.zeros(4, 3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_as_many_entries_pass_as_the_rates_and_the_share_say(share):
    torch.manual_seed(0)
    labels = torch.from_numpy(
        np.random.default_rng(1).choice([-1, 0, 0, 0, 1], (400, 3), p=[0.2, 0.2, 0.2, 0.3, 0.1])
    )
    logits = 3 * torch.randn(400, 3) - torch.tensor([0.0, 4.0, 8.0])
    own = OwnTransfer(share, labels).train()
    for _ in range(2):
        passed = own(logits, batch_of(labels))
    assert not passed[labels != 0].any()
    expected = oracle.passed(logits.tolist(), labels.tolist(), share)
    assert passed.sum(0).tolist() == pytest.approx(expected, abs=4)  # bins are 0.04 wide
    for c in range(3):
        kept, left = logits[passed[:, c], c], logits[~passed[:, c] & (labels[:, c] == 0), c]
        assert not len(kept) or not len(left) or kept.min() >= left.max() - 0.04


def test_nothing_passes_before_scores_have_been_seen():
    labels = torch.tensor([[0, 1], [0, -1]])
    own = OwnTransfer(1.0, labels).eval()
    assert not own(torch.full((2, 2), 15.0), batch_of(labels)).any()
    assert own.cuts.tolist() == [math.inf, math.inf]


def test_older_scores_count_less():
    """As many scores as a quarter of the training images are remembered."""
    labels = torch.zeros(40, 1)
    labels[:2] = torch.tensor([[1.0], [-1.0]])  # a rate of ½
    own = OwnTransfer(1.0, labels).train()
    unknown = batch_of(torch.zeros(5, 1))
    own(torch.full((5, 1), 3.0), unknown)
    assert own.counts.sum() == 5
    own(torch.full((5, 1), -3.0), unknown)
    assert own.counts.sum() == pytest.approx(2.5 + 5)
    for _ in range(20):
        own(torch.full((5, 1), -3.0), unknown)
    assert own.counts.sum() == pytest.approx(10, rel=0.01)
    assert own.cuts.item() == pytest.approx(-3, abs=0.05)


def test_known_entries_move_no_cut():
    labels = torch.tensor([[0, 1], [-1, 0], [0, 0]])
    first, second = (OwnTransfer(0.5, labels).train() for _ in range(2))
    logits = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.0]])
    for own, scores in ((first, logits), (second, torch.where(labels == 0, logits, -logits))):
        own(scores, batch_of(labels))
    assert torch.equal(first.cuts, second.cuts)


def test_evaluation_moves_no_cut():
    own = OwnTransfer(0.5, torch.zeros(2, 2)).eval()
    own(torch.ones(2, 2), batch_of(torch.zeros(2, 2)))
    assert own.counts.sum() == 0


def test_cuts_equal_a_loop_over_bins():
    counts = torch.from_numpy(np.random.default_rng(2).integers(0, 3, (4, 600))).float()
    shares = torch.tensor([0.0, 0.2, 0.7, 1.0])
    assert cuts_by_share(counts, shares).tolist() == pytest.approx(oracle.cuts(counts.tolist(), shares.tolist()))
