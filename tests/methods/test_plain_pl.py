"""plain_pl and ssgrl_pl: own confident predictions, shared by both."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.methods.test_methods import EARLY, LATE, batch_of, labels_of, make, total
from tests.methods.test_partial_bce import logits_for
from tests.oracles.losses import partial_bce, sigmoid

EXTENDS = {"plain_pl": "plain", "ssgrl_pl": "ssgrl"}


@pytest.mark.parametrize("name", EXTENDS)
def test_terms_equal_the_loop(name):
    """ℓ(y) and ℓ(y ∪ ŷ), ŷ = present where unknown and p ≥ confidence."""
    batch, logits = batch_of(), logits_for(batch_of())
    step = make(name, confidence=0.7).losses({"logits": logits}, batch, LATE)
    rows, labels = logits.tolist(), batch.labels.tolist()
    union = [
        [1 if y == 0 and sigmoid(x) >= 0.7 else y for x, y in zip(*row, strict=True)]
        for row in zip(rows, labels, strict=True)
    ]
    assert step.proposals["own"].any()
    assert step.terms["known"].item() == pytest.approx(partial_bce(rows, labels, "batch"), rel=1e-5)
    assert step.terms["pseudo_own"].item() == pytest.approx(partial_bce(rows, union, "batch"), rel=1e-5)


@pytest.mark.parametrize("name", EXTENDS)
def test_gradient_at_unknown_entries_only_where_proposed(name):
    batch = batch_of()
    logits = logits_for(batch).requires_grad_()
    step = make(name).losses({"logits": logits}, batch, LATE)
    sum(step.terms.values()).backward()  # type: ignore[union-attr]
    proposed = step.proposals["own"]
    assert proposed.any()
    assert not proposed[batch.labels != 0].any()
    assert logits.grad is not None
    assert (logits.grad[(batch.labels == 0) & ~proposed] == 0).all()
    assert (logits.grad[proposed] < 0).all()  # towards present


@pytest.mark.parametrize("name", EXTENDS)
def test_nothing_is_proposed_during_warm_up(name):
    batch = batch_of()
    step = make(name, confidence=0.0).losses({"logits": logits_for(batch)}, batch, EARLY)
    assert not step.proposals["own"].any()
    assert torch.equal(step.terms["pseudo_own"], step.terms["known"])


@pytest.mark.parametrize("name", EXTENDS)
def test_gradient_differs_from_the_method_it_extends_and_all_known_is_exactly_twice_it(name):
    """With nothing unknown ℓ(y ∪ ŷ) = ℓ(y), so that the loss is 2·ℓ(y): the same minimum."""
    for known, same in ((0.5, False), (1.0, True)):
        labels = labels_of(known)
        batch, gradients = batch_of(labels), []
        for method in (make(EXTENDS[name], labels), make(name, labels, confidence=0.3)):
            total(method, batch).backward()
            gradients.append([p.grad for p in method.parameters() if p.grad is not None])
        pairs = list(zip(*gradients, strict=True))
        assert all(torch.equal(2 * one, two) for one, two in pairs) is same


@pytest.mark.parametrize("name", EXTENDS)
def test_nothing_known_proposes_whatever_it_is_sure_of(name):
    """Nothing but its own predictions teaches it then: a run without any known label is refused earlier."""
    batch = batch_of(np.zeros_like(labels_of()))
    step = make(name, confidence=0.5).losses({"logits": logits_for(batch)}, batch, LATE)
    assert step.terms["known"].item() == 0
    assert torch.equal(step.proposals["own"], logits_for(batch) >= 0)
