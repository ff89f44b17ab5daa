from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.methods.test_methods import batch_of, labels_of, make, total
from tests.oracles import curriculum as oracle


def logits_for(batch):
    return 2 * torch.randn(batch.labels.shape, generator=torch.Generator().manual_seed(4))


def test_loss_is_the_publications():
    batch, logits = batch_of(), logits_for(batch_of())
    loss = make("partial_bce").classification(logits, batch)
    assert loss.item() == pytest.approx(oracle.proportional_bce(logits.tolist(), batch.labels.tolist()), rel=1e-5)


def test_weights_of_weak_absents_count_in_the_loss_and_in_the_share():
    batch, logits = batch_of(assume_absent=0.2), logits_for(batch_of())
    loss = make("partial_bce").classification(logits, batch)
    assert batch.weights is not None
    expected = oracle.proportional_bce(logits.tolist(), batch.targets.tolist(), batch.weights.tolist())
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_gradients_differ_from_plain_unless_all_is_known():
    for known, same in ((0.5, False), (1.0, True)):
        batch = batch_of(labels_of(known))
        gradients = []
        for name in ("plain", "partial_bce"):
            method = make(name)
            total(method, batch).backward()
            gradients.append(method.linear.weight.grad)  # type: ignore[union-attr]
        assert torch.allclose(*gradients, atol=1e-6) is same


def test_an_image_of_which_nothing_is_known_contributes_nothing():
    labels = labels_of()
    labels[3:] = 0
    few, all_ = batch_of(labels[:3]), batch_of(labels)
    method = make("partial_bce")
    logits = logits_for(all_)
    assert method.classification(logits, all_).item() * len(labels) == pytest.approx(
        method.classification(logits[:3], few).item() * 3, rel=1e-5
    )


def test_nothing_known_costs_nothing():
    batch = batch_of(np.zeros_like(labels_of()))
    assert total(make("partial_bce"), batch).item() == 0
