"""What can be said about GPUs without one: nothing waits for values, losses bear bfloat16, all weights learn."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fewtags.batch import Batch
from fewtags.methods import METHODS
from fewtags.methods.base import Method, Moment
from fewtags.training.prepare import random_folds
from tests.benchmarks.waits import Waits
from tests.methods.test_methods import EARLY, LATE, batch_of, labels_of, make, with_prototypes

MOMENTS = {"warm-up": EARLY, "later": LATE}


def prepared(name: str, **settings) -> tuple[Method, Batch]:
    """A method amid training, with prototypes and what else comes from a walk, and a batch for it."""
    labels = labels_of(known=1.0) if name == "full_labels" else labels_of()
    folds = random_folds(labels.shape, 0)
    own = METHODS[name].settings | {"threshold_labels": "crossfit"} | settings
    method, batch = make(name, labels, **own), batch_of(labels, folds=folds)
    return with_prototypes(method, batch), batch


def step(method: Method, batch: Batch, moment: Moment) -> torch.Tensor:
    """All that a training step does before the optimiser."""
    outputs = method.losses(method(batch.inputs), batch, moment)
    weights = method.loss_weights(moment)
    loss = torch.stack([weights.get(name, 1.0) * term for name, term in outputs.terms.items()]).sum()
    loss.backward()
    nn.utils.clip_grad_norm_(method.parameters(), 10.0)
    method.after_step()
    return loss.detach()


@pytest.mark.parametrize("when", MOMENTS)
@pytest.mark.parametrize("name", METHODS)
def test_no_step_waits_for_the_device(name, when):
    method, batch = prepared(name)
    step(method, batch, MOMENTS[when])  # the first of an epoch may look whether τ has started
    with Waits() as waits:
        for _ in range(2):
            step(method, batch, MOMENTS[when])
    assert waits.found == []
