"""What ssgrl_pl is beyond tests/methods/test_plain_pl.py: ssgrl's network, and decisions from its logits."""

from __future__ import annotations

import torch

from tests.methods.test_methods import LATE, batch_of, make


def test_network_is_that_of_ssgrl():
    batch = batch_of()
    one, two = (make(name)(batch.inputs)["logits"] for name in ("ssgrl", "ssgrl_pl"))
    assert torch.equal(one, two)


def test_decides_on_the_logits_of_the_running_step():
    method, batch = make("ssgrl_pl", confidence=0.5), batch_of()
    outputs = method(batch.inputs)
    proposed = method.losses(outputs, batch, LATE).proposals["own"]
    assert proposed.any()
    assert torch.equal(proposed, (outputs["logits"] >= 0) & (batch.labels == 0))
