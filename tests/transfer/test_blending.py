"""Blended features and soft targets, against loops over images and categories."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fewtags.batch import Batch
from fewtags.losses.partial_bce import partial_bce
from fewtags.recipe import Recipe
from fewtags.transfer import blending as module
from fewtags.transfer.blending import (
    Blending,
    blend,
    blended_loss,
    draw_one,
    draw_partners,
    soft_targets,
    taken_from_partners,
)
from fewtags.transfer.prototypes import Prototypes
from tests.oracles import blending as oracle

IMAGES, CATEGORIES, SIZE = 7, 5, 4


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def some_labels() -> Tensor:
    return torch.randint(-1, 2, (IMAGES, CATEGORIES)).float()


def some_outputs() -> dict[str, Tensor]:
    return {"features": torch.randn(IMAGES, CATEGORIES, SIZE), "beside": torch.randn(IMAGES, CATEGORIES)}


def batch_of(labels: Tensor, weights: Tensor | None = None) -> Batch:
    nothing = torch.zeros(len(labels))
    return Batch(nothing, labels, nothing, labels, weights)


class Sums(nn.Module):
    """A network whose logits a loop can follow; it keeps what it was given."""

    def logits(self, features: Tensor, beside: Tensor) -> Tensor:
        self.features, self.beside = features, beside
        return features.sum(-1) / 4 + beside


def blending_of(**settings) -> Blending:
    recipe = Recipe(feature_size=SIZE, prototypes=3, **settings)
    made = Blending(recipe, CATEGORIES)
    with torch.no_grad():
        made.instance_logit.fill_(-0.4)
        made.prototype_logit.fill_(0.7)
    return made


def test_shares_start_at_a_half_and_stay_between_0_and_1():
    made = Blending(Recipe(feature_size=SIZE), CATEGORIES)
    assert made.status() == {"blend/instances": 0.5, "blend/prototypes": 0.5}
    with torch.no_grad():
        made.instance_logit.fill_(1e6)
        made.prototype_logit.fill_(-1e6)
    assert made.status() == {"blend/instances": 1.0, "blend/prototypes": 0.0}


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("normalization", ["batch", "image", "categories"])
def test_instance_level_equals_the_loop(normalization, weak, monkeypatch):
    labels, outputs, network = some_labels(), some_outputs(), Sums()
    labels[0] = 0
    labels[1] = 1
    labels[3, :2], labels[4, :2] = 0, 1
    partners = torch.tensor([1, 2, 3, 4, 5, 6, 0])
    monkeypatch.setattr(module, "draw_partners", lambda images: partners)
    weights = torch.rand(IMAGES, CATEGORIES) if weak else None
    made = blending_of(known_normalization=normalization, blend_prototypes=False)
    terms = made(network, outputs, batch_of(labels, weights))
    share = float(made.instance_share.detach())
    lists = [outputs["features"].tolist(), outputs["beside"].tolist(), labels.tolist()]
    features, beside, targets = oracle.instance_level(*lists, partners.tolist(), share)
    assert len(targets) > CATEGORIES
    assert torch.allclose(network.features, torch.tensor(features))
    assert torch.allclose(network.beside, torch.tensor(beside))
    logits = [[sum(f) / 4 + b for f, b in zip(*rows, strict=True)] for rows in zip(features, beside, strict=True)]
    expected = oracle.loss(
        logits, labels.tolist(), targets, None if weights is None else weights.tolist(), normalization
    )
    assert list(terms) == ["blend_instance"]
    assert float(terms["blend_instance"].detach()) == pytest.approx(expected, rel=1e-5)


def test_prototype_level_equals_the_loop(monkeypatch):
    labels, outputs, network = some_labels(), some_outputs(), Sums()
    labels[:, 1:3] = 0
    labels[6] = 1  # nothing unknown
    made = blending_of(blend_instances=False)
    known = torch.tensor([0] * 6 + [1] * 2 + [3] + [4])  # of category 2 there is none
    made.prototypes.update(torch.randn(10, SIZE), known)
    made.typical_beside.copy_(torch.randn(CATEGORIES))
    drawn = []
    monkeypatch.setattr(module, "draw_one", lambda eligible: drawn.append(draw_one(eligible)) or drawn[-1])
    loss = made(network, outputs, batch_of(labels))["blend_prototype"]
    chosen = {}
    for n, (c, k) in enumerate(zip(*(part.tolist() for part in drawn), strict=True)):
        if n < 6:
            assert labels[n, c] == 0
            assert k < made.prototypes.counts[c]
            chosen[n] = c, made.prototypes.vectors[c, k].tolist(), float(made.typical_beside[c])
    share = float(made.prototype_share.detach())
    lists = outputs["features"].tolist(), outputs["beside"].tolist()
    features, beside, targets = oracle.prototype_level(*lists, chosen, share)
    assert torch.allclose(network.features, torch.tensor(features), atol=1e-6)
    assert torch.allclose(network.beside, torch.tensor(beside), atol=1e-6)
    logits = [[sum(f) / 4 + b for f, b in zip(*rows, strict=True)] for rows in zip(features, beside, strict=True)]
    assert float(loss.detach()) == pytest.approx(oracle.loss(logits, labels.tolist(), targets), rel=1e-5)


def test_prototypes_of_the_method_serve_together():
    """Two cross-fitted sets: a category's prototypes may come from either, and from no empty slot."""
    labels, network = torch.zeros(IMAGES, CATEGORIES), Sums()
    outputs = {"features": torch.ones(IMAGES, CATEGORIES, SIZE), "beside": torch.zeros(IMAGES, CATEGORIES)}
    made = Blending(Recipe(feature_size=SIZE, blend_instances=False), CATEGORIES, own_prototypes=False)
    sets = [Prototypes(CATEGORIES, SIZE, 3) for _ in range(2)]
    for part, direction in zip(sets, torch.eye(SIZE), strict=False):
        part.update(direction.expand(2, SIZE), torch.tensor([2, 2]))
    seen = set()
    for _ in range(10):
        made(network, outputs, batch_of(labels), sets)
        moved = network.features[:, 2] - 0.5
        assert (network.features[:, [0, 1, 3, 4]] == 1).all()
        assert torch.allclose(moved.sum(1), torch.ones(IMAGES))  # half of a prototype as long as the feature
        seen |= {int(place) for place in moved.argmax(1)}
    assert seen == {0, 1}


def test_without_prototypes_nothing_is_blended():
    labels, outputs, network = some_labels(), some_outputs(), Sums()
    loss = blending_of()(network, outputs, batch_of(labels))["blend_prototype"]
    assert torch.equal(network.features, outputs["features"])
    assert float(loss.detach()) == pytest.approx(float(partial_bce(network.logits(**outputs), labels)))


def test_all_known_leaves_nothing_to_blend():
    labels, outputs, network = torch.ones(IMAGES, CATEGORIES), some_outputs(), Sums()
    made = blending_of()
    made.prototypes.update(torch.randn(10, SIZE), torch.arange(10) % CATEGORIES)
    expected = partial_bce(network.logits(**outputs), labels)
    terms = made(network, outputs, batch_of(labels))
    assert set(terms) == {"blend_instance", "blend_prototype"}
    assert all(torch.allclose(term, expected) for term in terms.values())


def test_nothing_known_gives_a_zero_with_a_graph():
    outputs = {name: value.requires_grad_() for name, value in some_outputs().items()}
    loss = blending_of()(Sums(), outputs, batch_of(torch.zeros(IMAGES, CATEGORIES)))["blend_instance"]
    loss.backward()
    assert float(loss.detach()) == 0
    assert (outputs["features"].grad == 0).all()  # type: ignore[union-attr]


def test_gradients_reach_the_share_through_features_and_through_the_target():
    labels = torch.tensor([[0.0, 1.0], [1.0, -1.0]], dtype=torch.double)
    where = taken_from_partners(labels, torch.tensor([1, 0]))
    assert where.tolist() == [[True, False], [False, False]]
    own, other = torch.randn(2, 2, dtype=torch.double), torch.randn(2, 2, dtype=torch.double)

    def value(rho: Tensor) -> Tensor:
        share = torch.sigmoid(rho)
        return blended_loss(blend(own, other, share, where), labels, share, where)

    rho = torch.tensor(0.3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(value, (rho,))
    share = torch.sigmoid(rho).detach()
    x = share * own[0, 0] + (1 - share) * other[0, 0]
    through_features = (torch.sigmoid(x) - (1 - share)) * (own[0, 0] - other[0, 0])
    expected = (through_features + x) * share * (1 - share) / 4  # four entries are used
    value(rho).backward()
    assert rho.grad == pytest.approx(float(expected))


def test_unknown_entries_that_are_not_blended_have_exactly_zero_gradient():
    labels = some_labels()
    where = taken_from_partners(labels, draw_partners(IMAGES))
    logits = torch.randn(IMAGES, CATEGORIES)
    logits[(labels == 0) & ~where] = torch.inf
    logits.requires_grad_()
    loss = blended_loss(logits, labels, torch.tensor(0.5), where)
    loss.backward()
    assert torch.isfinite(loss)
    assert logits.grad is not None
    assert (logits.grad[(labels == 0) & ~where] == 0).all()
    assert (logits.grad[(labels != 0) | where] != 0).all()


def test_a_blended_entry_replaces_a_weak_absent():
    labels, weak = torch.zeros(1, 2), -torch.ones(1, 2)
    where = torch.tensor([[True, False]])
    assert soft_targets(weak, torch.tensor(0.3), where).tolist() == [[pytest.approx(0.7), 0.0]]
    logits = torch.tensor([[0.5, -0.2]])
    found = blended_loss(logits, weak, torch.tensor(0.3), where, weights=torch.full((1, 2), 0.25))
    expected = oracle.loss(logits.tolist(), weak.tolist(), {(0, 0): 0.7}, [[0.25, 0.25]])
    assert float(found) == pytest.approx(expected)
    assert not taken_from_partners(labels, torch.tensor([0])).any()


@pytest.mark.parametrize("images", [1, 2, 3, 8])
def test_partners_are_all_images_and_never_oneself(images):
    seen = set()
    for _ in range(50):
        partners = draw_partners(images)
        assert sorted(partners.tolist()) == list(range(images))
        assert images == 1 or (partners != torch.arange(images)).all()
        seen.add(tuple(partners.tolist()))
    assert len(seen) == {1: 1, 2: 1, 3: 2}.get(images, len(seen))
    assert images < 8 or len(seen) > 40


def test_one_of_each_row_is_drawn_evenly():
    eligible = torch.tensor([[True, False, True, True], [False, False, False, False]]).repeat(3000, 1)
    drawn = draw_one(eligible)
    counts = torch.bincount(drawn[::2], minlength=4).tolist()
    assert counts[1] == 0
    assert all(900 < counts[place] < 1100 for place in (0, 2, 3))
    assert (drawn[1::2] == 0).all()


def test_draws_follow_the_global_seed():
    def draw() -> list[list[int]]:
        torch.manual_seed(4)
        return [draw_partners(9).tolist(), draw_one(torch.ones(9, 9) > 0).tolist()]

    assert draw() == draw()


def test_a_walk_makes_prototypes_and_what_is_beside_the_graph():
    labels = some_labels()
    labels[:, 2] = -1
    batches = [(batch_of(labels), some_outputs()) for _ in range(3)]
    made = blending_of()
    made.start_walk()
    for batch, outputs in batches:
        made.look(batch, outputs, torch.zeros(0))
    made.finish_walk(0)
    for c in range(CATEGORIES):
        present = [float(o["beside"][n, c]) for b, o in batches for n in range(IMAGES) if b.labels[n, c] == 1]
        mean = sum(present) / len(present) if present else 0.0
        assert float(made.typical_beside[c]) == pytest.approx(mean, abs=1e-6)
        assert made.prototypes is not None
        assert int(made.prototypes.counts[c]) == min(3, len(present))
    assert "present" not in vars(made)
