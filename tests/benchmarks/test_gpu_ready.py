"""What can be said about GPUs without one: nothing waits for values, losses bear bfloat16, all weights learn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from fewtags.batch import Batch
from fewtags.methods import METHODS
from fewtags.methods.base import Method, Moment
from fewtags.training.callbacks import PseudoLabelAudit
from fewtags.training.prepare import random_folds
from tests.benchmarks.waits import Waits
from tests.methods.test_methods import EARLY, LATE, batch_of, labels_of, make, with_prototypes

MOMENTS = {"warm-up": EARLY, "later": LATE}
IDLE_IN_WARM_UP = {name: ["blending.instance_logit", "blending.prototype_logit"] for name in ("sarb", "hst_fb")}
"""Blending begins after warm-up. Until then it gives DDP zeros where there are several processes
(`Blending.idle_terms`, tests/processes), and one process nothing."""
OPTIONS = [
    {},
    {"pair_targets": "released"},
    {"cross_source": "instances"},
    {"prototype_similarity": "max"},
    {"prototype_contrast": True},
    {"intra_source": "statistical"},
    {"threshold": "per_category"},
    {"threshold": 0.4},
    {"thresholds": "released"},
    {"thresholds": "falling"},
    {"threshold_target": "precision:0.6"},
    {"dtl_gradient": "through"},
    {"category_features": "sa"},
    {"pair_scores": "per_pair", "pair_layers": "released"},
    {"intra": False},
    {"cross": False},
]


def prepared(name: str, walked: bool = True, **settings) -> tuple[Method, Batch]:
    """A method amid training, with prototypes and what else comes from a walk, and a batch for it."""
    labels = labels_of(known=1.0) if name == "full_labels" else labels_of()
    own = METHODS[name].settings | {"threshold_labels": "crossfit"} | settings
    method, batch = make(name, labels, **own), batch_of(labels, folds=random_folds(labels.shape, 0))
    return (with_prototypes(method, batch) if walked else method), batch


def loss_of(method: Method, batch: Batch, moment: Moment) -> torch.Tensor:
    terms = method.losses(method(batch.inputs), batch, moment).terms
    weights = method.loss_weights(moment)
    return torch.stack([weights.get(name, 1.0) * term for name, term in terms.items()]).sum()


def step(method: Method, batch: Batch, moment: Moment) -> None:
    """All that a training step does before the optimiser."""
    loss_of(method, batch, moment).backward()
    nn.utils.clip_grad_norm_(method.parameters(), 10.0)
    method.after_step()


def waits_of(method: Method, batch: Batch, moment: Moment) -> list[str]:
    step(method, batch, moment)  # the first of an epoch may look whether τ has started
    with Waits() as waits:
        for _ in range(2):
            step(method, batch, moment)
    return waits.found


@pytest.mark.parametrize("when", MOMENTS)
@pytest.mark.parametrize("name", METHODS)
def test_no_step_waits_for_the_device(name, when):
    assert waits_of(*prepared(name), MOMENTS[when]) == []


@pytest.mark.parametrize("settings", OPTIONS, ids=str)
def test_options_do_not_wait_either(settings):
    assert waits_of(*prepared("hst", **settings), LATE) == []


def test_slopes_start_without_waiting():
    method, batch = prepared("hst", walked=False)
    assert not method.intra.threshold.started
    assert waits_of(method, batch, EARLY) == []


def test_counting_pseudo_labels_does_not_wait():
    method, batch = prepared("hst", threshold=0.3)
    proposals = method.losses(method(batch.inputs), batch, LATE).proposals
    hidden = np.where(labels_of() == 0, labels_of(known=1.0), 0).astype(np.int8)
    audit = PseudoLabelAudit(hidden)
    with Waits() as waits:
        for _ in range(2):
            audit.on_train_batch_end(None, None, {"proposals": proposals}, batch, 0)
    assert waits.found == []
    right = (proposals["intra"].numpy() & (hidden == 1)).sum()
    assert 0 < int(audit.counts["pseudo/intra_right"]) == 2 * right


@pytest.mark.parametrize("kind", ["both_known", "three_valued"])
def test_targets_of_few_use_wait_for_their_pairs(kind):
    """Not the default, nor the paper's: here the rows of pairs are looked for on the device."""
    found = waits_of(*prepared("hst", pair_targets=kind), LATE)
    assert {wait.split(" ", 1)[1] for wait in found} == {
        "in fewtags/transfer/intra.py: pair_rows",
        "in fewtags/transfer/intra.py: forward",
    }


@pytest.mark.parametrize(
    "waiting",
    [
        lambda t: t.sum().item(),
        lambda t: t.cpu(),
        lambda t: t.tolist(),
        lambda t: t.numpy(),
        lambda t: bool(t.any()),
        lambda t: float(t.sum()),
        lambda t: int(t.sum()),
        lambda t: t[t > 0],
        lambda t: t.masked_fill(t > 0, 0).index_put((t > 0,), torch.tensor(1.0)),
        lambda t: torch.nonzero(t),
        lambda t: torch.unique(t),
        lambda t: torch.masked_select(t, t > 0),
        lambda t: torch.equal(t, t),
        lambda t: range(int(t.argmax())),
        lambda t: torch.where(t > 0),
    ],
)
def test_what_waits_is_noticed(waiting):
    values = torch.tensor([1.0, -1.0, 2.0])
    with Waits() as waits:
        waiting(values)
    assert len(waits.found) == 1


def test_what_does_not_wait_is_not_reported():
    values = torch.tensor([1.0, -1.0, 2.0], requires_grad=True)
    with Waits() as waits:
        chosen = torch.where(values > 0, values, 0)[torch.tensor([0, 2])]
        chosen.softmax(0).sum().backward()
        values.detach().clone()[None, 1:].masked_fill_(values[1:] > 0, 3).cumsum(0)
    assert waits.found == []


@pytest.mark.parametrize("when", MOMENTS)
@pytest.mark.parametrize("name", METHODS)
def test_losses_bear_autocast(name, when):
    """bfloat16 has 8 bits: losses are finite float32, close to what float32 gives, and so are the gradients."""
    found = []
    for enabled in (False, True):
        method, batch = prepared(name)
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            terms = method.losses(method(batch.inputs), batch, MOMENTS[when]).terms
        assert all(term.dtype == torch.float32 for term in terms.values())
        torch.stack(list(terms.values())).sum().backward()
        gradients = [p.grad for p in method.parameters() if p.grad is not None]
        assert all(torch.isfinite(gradient).all() for gradient in gradients)
        found.append(np.array([float(term.detach()) for term in terms.values()]))
    assert np.isfinite(found[1]).all()
    np.testing.assert_allclose(found[1], found[0], rtol=0.02, atol=0.01)


@pytest.mark.parametrize("when", MOMENTS)
@pytest.mark.parametrize("name", METHODS)
def test_every_trained_weight_gets_a_gradient_each_step(name, when):
    method, batch = prepared(name)
    step(method, batch, MOMENTS[when])
    idle = [key for key, p in method.named_parameters() if p.requires_grad and p.grad is None]
    assert idle == (IDLE_IN_WARM_UP.get(name, []) if when == "warm-up" else [])


@pytest.mark.parametrize("settings", OPTIONS, ids=str)
def test_options_leave_no_weight_idle(settings):
    method, batch = prepared("hst", **settings)
    step(method, batch, LATE)
    assert not [key for key, p in method.named_parameters() if p.requires_grad and p.grad is None]


@pytest.mark.parametrize("kind", ["blend_instances", "blend_prototypes"])
def test_a_share_that_blends_nothing_is_not_trained(kind):
    method, batch = prepared("sarb", **{kind: False})
    step(method, batch, LATE)
    assert not [key for key, p in method.named_parameters() if p.requires_grad and p.grad is None]


@pytest.fixture(scope="module")
def group() -> Iterator[None]:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


class Training(nn.Module):
    """As Lightning hands a training step to DDP: its forward gives the loss."""

    def __init__(self, method: Method):
        super().__init__()
        self.method = method

    def forward(self, batch: Batch, moment: Moment) -> torch.Tensor:
        return loss_of(self.method, batch, moment)


@pytest.mark.parametrize("name", METHODS)
def test_distributed_training_needs_no_search_for_unused_weights(name, group):
    """DDP raises at the step after one in which a weight got no gradient."""
    method, batch = prepared(name)
    parallel = DistributedDataParallel(Training(method), find_unused_parameters=False)
    for _ in range(3):
        parallel(batch, LATE).backward()


def test_distributed_training_would_notice_an_idle_weight(group):
    method, batch = prepared("sarb")
    parallel = DistributedDataParallel(Training(method), find_unused_parameters=False)
    with pytest.raises(RuntimeError, match="did not receive grad"):  # noqa: PT012
        for _ in range(3):
            parallel(batch, EARLY).backward()
