"""The linear layer beside hst: what it learns from, and that no filled label reaches it."""

import math

import numpy as np
import pytest
import torch

from fewtags.nn.classifier import PooledClassifier
from fewtags.recipe import Recipe
from fewtags.transfer import plain_first
from tests.conftest import TINY
from tests.methods.test_methods import CATEGORIES, EARLY, IMAGES, LATE, batch_of, labels_of, make
from tests.oracles.own_transfer import passed


def ready(labels: np.ndarray | None = None, **settings):
    """hst after its layer has learned, and what it has seen."""
    labels = labels_of() if labels is None else labels
    settings |= {"first_scores": "base_rates", "freeze_backbone": True, "shortcut_lr": 0.1}
    method, batch = make("hst", labels, **settings), batch_of(labels)
    method.before_training(lambda: [batch])
    return method.train(), batch


def test_it_learns_what_a_loop_over_entries_learns(monkeypatch: pytest.MonkeyPatch):
    """AdamW and a cosine by hand, from the sum over known entries divided by their number."""
    monkeypatch.setattr(plain_first, "EPOCHS", 3)
    labels = labels_of()
    method, batch = ready(labels, batch_size=IMAGES)
    recipe, x = method.recipe, batch.inputs.mean((2, 3)).double()
    x = x - x.mean(0)
    weight = torch.zeros(CATEGORIES, x.shape[1], dtype=torch.double)
    bias = make("hst", labels, first_scores="base_rates").plain.bias.detach().double()
    moments = [[torch.zeros_like(p), torch.zeros_like(p)] for p in (weight, bias)]
    known = [(i, c, labels[i, c]) for i in range(IMAGES) for c in range(CATEGORIES) if labels[i, c]]
    for step in range(3):
        gradients = [torch.zeros_like(weight), torch.zeros_like(bias)]
        for i, c, y in known:
            pull = -float(y) / (1 + math.exp(float(y * (weight[c] @ x[i] + bias[c])))) / len(known)
            gradients[0][c] += pull * x[i]
            gradients[1][c] += pull
        lr = recipe.shortcut_lr * 0.5 * (1 + math.cos(math.pi * step / 3))
        for value, gradient, (first, second), decay in zip(
            (weight, bias), gradients, moments, (recipe.weight_decay, 0.0), strict=True
        ):
            value.mul_(1 - lr * decay)
            first.mul_(0.9).add_(0.1 * gradient)
            second.mul_(0.999).add_(0.001 * gradient**2)
            root = (second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
            value.sub_(lr * first / (1 - 0.9 ** (step + 1)) / root)
    assert method.plain.weight.double().numpy() == pytest.approx(weight.numpy(), abs=1e-5)
    assert method.plain.bias.double().numpy() == pytest.approx(bias.numpy(), abs=1e-5)


def test_steps_of_training_leave_it_as_it_is():
    method, batch = ready(own_share=1.0)
    before = {name: value.clone() for name, value in method.plain.state_dict().items()}
    cuts = method.own.cuts.clone()
    step = method.losses(method(batch.inputs), batch, EARLY)
    assert step.proposals["own"].any()  # nothing has to warm up
    assert "plain" not in step.terms
    sum(step.terms.values()).backward()
    groups = [group for group in method.parameter_groups() if group.parameters]
    torch.optim.Adam([p for group in groups for p in group.parameters if p.requires_grad], lr=0.1).step()
    assert all(torch.equal(value, before[name]) for name, value in method.plain.state_dict().items())
    assert torch.equal(method.own.cuts, cuts)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_own_labels_are_its_surest_ones(share: float):
    method, batch = ready(own_share=share)
    outputs = method(batch.inputs)
    proposed = method.losses(outputs, batch, EARLY).proposals
    expected = passed(outputs["plain"].tolist(), batch.labels.tolist(), share)
    found = method.own(outputs["plain"], batch)
    assert found.sum(0).tolist() == pytest.approx(expected, abs=1)
    assert torch.equal(proposed["own"], found & ~proposed["intra"] & ~proposed["cross"])


def test_with_a_trained_backbone_it_learns_along_and_nothing_else_through_it():
    labels = labels_of()
    method, batch = make("hst", labels, freeze_backbone=False), batch_of(labels)
    method.before_training(lambda: pytest.fail("there is nothing to learn first"))
    maps = batch.inputs.clone().requires_grad_()
    method.losses(method(maps), batch, EARLY).terms["plain"].backward()
    assert maps.grad is None or not maps.grad.any()
    given = {name for name, value in method.named_parameters() if value.grad is not None and value.grad.any()}
    assert given == {"plain.weight", "plain.bias"}
    groups = {group.name: group for group in method.parameter_groups()}
    assert any(value is method.plain.weight for value in groups["shortcut"].parameters)


def test_of_many_images_every_kth_is_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plain_first, "MOST_IMAGES", 7)
    batch = batch_of()
    seen = plain_first.pooled([batch], IMAGES)
    assert len(seen.maps) == len(seen.labels) == 7  # 0, 3, ..., 18
    assert torch.equal(seen.maps, batch.inputs.mean((2, 3))[::3])
    assert torch.equal(seen.labels.float(), batch.labels[::3])


def test_weak_absents_count_by_their_weight():
    layer = PooledClassifier(2, torch.zeros(1), centred=False)
    recipe = Recipe(**TINY, shortcut_lr=0.1)
    maps, nothing = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.zeros(2, 1, dtype=torch.int8)
    absent = torch.tensor([[-1], [-1]], dtype=torch.int8)
    seen = plain_first.Pooled(maps, nothing, absent, torch.tensor([[1.0], [0.0]]))
    plain_first.learn(layer, seen, recipe)
    first, second = layer.weight[0].tolist()
    assert first < -0.05
    assert second == 0


@pytest.mark.parametrize("frozen", [True, False])
def test_what_is_transferred_has_to_be_plausible_to_it(frozen: bool):
    settings = {"freeze_backbone": frozen, "threshold": 0.0, "own_share": 0.0, "plain_beside": True}
    labels = labels_of()
    free, held = (make("hst", labels, **settings, plausible_share=share) for share in (0.0, 0.5))
    assert free.plausible is None
    batch = batch_of(labels)
    for method in (free, held):
        method.before_training(lambda: [batch])
        method.train()
    if not frozen:
        torch.nn.init.normal_(held.plain.weight)  # it learns along; at first it says the same of all images
    outputs = held(batch.inputs)
    proposals = held.losses(outputs, batch, LATE).proposals
    unbound = free.losses(free(batch.inputs), batch, LATE).proposals
    filled, unbound = (parts["intra"] | parts["cross"] for parts in (proposals, unbound))
    plausible = outputs["plain"] >= held.plausible.cuts
    assert torch.equal(filled, unbound & plausible)
    assert 0 < filled.sum() < unbound.sum()


def test_nothing_asks_whether_it_is_plausible_without_the_layer():
    assert make("hst", plain_beside=False, plausible_share=1.0).plausible is None
