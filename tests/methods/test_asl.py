from __future__ import annotations

import numpy as np
import pytest
import torch

from fewtags.methods.asl import Asl
from tests.methods.test_methods import batch_of, labels_of, make, total
from tests.methods.test_partial_bce import logits_for
from tests.oracles import losses as oracle


def cells(logits, labels):
    rows = zip(logits.tolist(), labels.tolist(), strict=True)
    return [[oracle.asymmetric(x, y, 0.0, 4.0, 0.05) for x, y in zip(*row, strict=True)] for row in rows]


@pytest.mark.parametrize("normalization", ["batch", "image", "categories"])
def test_loss_equals_the_loop_with_its_own_constants(normalization):
    """γ₊ = 0, γ₋ = 4, clip 0.05 on the known entries, divided as ℓ is."""
    batch, logits = batch_of(), logits_for(batch_of())
    method = make("asl", known_normalization=normalization, **Asl.settings)
    losses, known = np.array(cells(logits, batch.labels)), batch.labels.numpy() != 0
    per_image = losses.sum(1) / np.maximum(known.sum(1), 1)
    expected = {"batch": losses.sum() / known.sum(), "image": per_image.mean(), "categories": losses.mean()}
    assert method.classification(logits, batch).item() == pytest.approx(expected[normalization], rel=1e-4)


def test_weak_absents_count_by_their_weight():
    batch, logits = batch_of(assume_absent=0.2), logits_for(batch_of())
    assert batch.weights is not None
    weights = batch.weights.numpy()
    expected = (weights * np.array(cells(logits, batch.targets))).sum() / weights.sum()
    method = make("asl", **Asl.settings)
    assert method.classification(logits, batch).item() == pytest.approx(expected, rel=1e-4)


def test_unknown_entries_have_exactly_zero_gradient():
    batch = batch_of()
    logits = logits_for(batch).clamp(min=0).requires_grad_()  # away from the absents that cost nothing
    make("asl", **Asl.settings).classification(logits, batch).backward()
    assert logits.grad is not None
    assert torch.equal(logits.grad != 0, batch.labels != 0)


def test_easy_absents_lose_their_gradient_relative_to_plain():
    labels = np.full_like(labels_of(), -1)
    batch = batch_of(labels)
    gradients = {}
    for name in ("plain", "asl"):
        logits = torch.full(batch.labels.shape, -2.0, requires_grad=True)  # p = 0.12
        make(name, **(Asl.settings if name == "asl" else {})).classification(logits, batch).backward()
        assert logits.grad is not None
        gradients[name] = logits.grad.abs().sum().item()
    assert gradients["asl"] < 1e-3 * gradients["plain"]


def test_nothing_known_costs_nothing():
    assert total(make("asl", **Asl.settings), batch_of(np.zeros_like(labels_of()))).item() == 0
