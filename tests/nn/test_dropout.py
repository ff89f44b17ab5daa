from __future__ import annotations

import pytest
import torch

from fewtags.nn.dropout import Dropout, random_bytes


def test_bytes_are_uniform_in_every_place():
    """Each of the eight bytes of a word takes all 256 values equally often."""
    torch.manual_seed(0)
    drawn = random_bytes(torch.empty(8 * 64 * 256)).view(-1, 8)
    for place in range(8):
        counts = torch.bincount(drawn[:, place].long(), minlength=256).double()
        chi_square = float(((counts - 64) ** 2 / 64).sum())
        assert 170 < chi_square < 350  # 255 ± 4 standard deviations
    assert random_bytes(torch.empty(3, 5)).shape == (3, 5)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_drops_the_share_and_keeps_the_mean_and_the_gradient(rate):
    torch.manual_seed(0)
    values = torch.ones(400, 500, requires_grad=True)
    dropped = Dropout(rate)(values)
    assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.005)
    assert float(dropped.detach().mean()) == pytest.approx(1.0, abs=0.005)
    dropped.sum().backward()
    assert torch.equal(values.grad, dropped.detach())


def test_does_nothing_when_evaluating_or_at_rate_zero():
    values = torch.randn(4, 5)
    assert Dropout(0.5).eval()(values) is values
    assert Dropout(0.0)(values) is values


def test_is_decided_by_the_seed():
    values = torch.randn(40, 50)
    drawn = []
    for _ in range(2):
        torch.manual_seed(7)
        drawn.append(Dropout(0.3)(values))
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], Dropout(0.3)(values))


def test_empty_input():
    assert Dropout(0.3)(torch.empty(0, 4)).shape == (0, 4)
