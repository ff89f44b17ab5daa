import pytest
import torch

from fewtags.losses.proportional_bce import proportional_bce, share_weight
from tests.losses.test_partial_bce import made_up
from tests.oracles import curriculum as oracle


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_double_loop(weighted):
    logits, labels, weights = made_up()
    chosen = weights if weighted else None
    expected = oracle.proportional_bce(logits.tolist(), labels.tolist(), chosen.tolist() if weighted else None)
    assert proportional_bce(logits, labels, chosen).item() == pytest.approx(expected, rel=1e-5)


def test_weights_of_the_publication():
    shares = torch.tensor([1.0, 0.5, 0.1])
    assert share_weight(shares).tolist() == pytest.approx([1.0, 3.225, 5.005])


def test_all_known_is_the_ordinary_mean():
    logits, labels, _ = made_up()
    labels = torch.where(labels == 0, -1, labels)
    ordinary = torch.nn.functional.binary_cross_entropy_with_logits(logits, (labels > 0).float())
    assert proportional_bce(logits, labels).item() == pytest.approx(ordinary.item(), rel=1e-5)


def test_nothing_known_is_a_zero_with_a_graph():
    logits, labels, _ = made_up()
    loss = proportional_bce(logits, torch.zeros_like(labels))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_unknown_entries_have_exactly_zero_gradient_whatever_their_logit():
    logits, labels, _ = made_up()
    with torch.no_grad():
        logits[2, 0], logits[2, 1] = torch.inf, torch.nan
    proportional_bce(logits, labels).backward()
    assert (logits.grad[labels == 0] == 0).all()
    assert (logits.grad[labels != 0] != 0).all()


def test_a_label_counts_more_where_less_is_known():
    logits = torch.zeros(2, 5, requires_grad=True)
    labels = torch.tensor([[1, 0, 0, 0, 0], [1, -1, 1, -1, 1]])
    proportional_bce(logits, labels).backward()
    assert (logits.grad[0, 0] / logits.grad[1, 0]).item() == pytest.approx(-4.45 * 0.2 + 5.45)
