import pytest
import torch

from fewtags.losses.asymmetric import asymmetric
from fewtags.losses.partial_bce import elementwise_bce
from tests.oracles import losses as oracle


def made_up(seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = (3 * torch.randn(6, 5, generator=generator)).requires_grad_()
    return logits, torch.randint(-1, 2, (6, 5), generator=generator)


@pytest.mark.parametrize("settings", [(1.0, 2.0, 0.05), (0.0, 4.0, 0.05), (1.0, 2.0, 0.0), (2.0, 0.0, 0.3)])
def test_equals_the_loop(settings):
    logits, labels = made_up()
    losses = asymmetric(logits, labels, *settings)
    for logit, label, loss in zip(logits.flatten(), labels.flatten(), losses.flatten(), strict=True):
        expected = oracle.asymmetric(logit.item(), label.item(), *settings)
        assert loss.item() == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_without_focusing_and_shift_it_is_cross_entropy():
    logits, labels = made_up()
    assert torch.allclose(asymmetric(logits, labels, 0, 0, 0), elementwise_bce(logits, labels), atol=1e-6)


def test_unknown_entries_have_exactly_zero_loss_and_gradient():
    logits, labels = made_up()
    losses = asymmetric(logits, labels, 1, 2, 0.05)
    losses.sum().backward()
    assert (losses[labels == 0] == 0).all()
    assert (logits.grad[labels == 0] == 0).all()


def test_focusing_weights_carry_no_gradient():
    logit = torch.tensor([0.7, 0.7], requires_grad=True)
    asymmetric(logit, torch.tensor([1, -1]), 1.0, 2.0, 0.05).sum().backward()
    p = torch.sigmoid(logit.detach())[0]
    present = (1 - p) * -(1 - p)  # weight times the derivative of -log σ(x)
    absent = (p - 0.05) ** 2 * p * (1 - p) / (1 - p + 0.05)
    assert torch.allclose(logit.grad, torch.stack([present, absent]), atol=1e-6)


def test_absents_below_the_shift_cost_nothing():
    logits = torch.full((3,), -4.0, requires_grad=True)  # p = 0.018
    losses = asymmetric(logits, torch.full((3,), -1), 1, 2, 0.05)
    losses.sum().backward()
    assert losses.sum() == 0
    assert (logits.grad == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_extreme_logits_stay_finite(dtype, shift):
    logits = torch.tensor([500.0, -500.0, 500.0, -500.0], dtype=dtype, requires_grad=True)
    losses = asymmetric(logits, torch.tensor([1, 1, -1, -1]), 1, 2, shift)
    losses.sum().backward()
    assert losses.dtype == torch.float32
    assert torch.isfinite(losses).all()
    assert torch.isfinite(logits.grad).all()
