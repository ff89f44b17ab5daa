"""The discriminant beside hst: its formula, its scale, and that nothing trains through it."""

import pytest
import torch

from fewtags.nn.classifier import PooledClassifier
from fewtags.transfer.discriminant import RIDGE, set_discriminant
from tests.methods.test_methods import CATEGORIES, EARLY, IMAGES, batch_of, make
from tests.oracles.discriminant import direction
from tests.transfer.test_plain_first import ready


def made(present: torch.Tensor, maps: torch.Tensor, scores: torch.Tensor) -> PooledClassifier:
    layer = PooledClassifier(maps.shape[1], torch.zeros(present.shape[1]), centred=True)
    set_discriminant(layer, maps, present, scores)
    return layer


def test_weights_point_where_a_loop_says_and_scores_are_spread_as_those_given():
    draw = torch.Generator().manual_seed(0)
    maps = torch.randn(30, 4, generator=draw) @ torch.randn(4, 4, generator=draw) + 3
    present = torch.rand(30, 3, generator=draw) < 0.3
    scores = 2 * torch.randn(30, 3, generator=draw) - 1
    layer = made(present, maps, scores)
    for c in range(3):
        expected = torch.tensor(direction(maps.tolist(), present[:, c].tolist(), RIDGE))
        found = layer.weight[c].detach()
        assert torch.allclose(found / found.norm(), expected / expected.norm(), atol=1e-4)
    given = layer.of_pooled(maps)
    assert torch.allclose(given.mean(0), scores.mean(0), atol=1e-4)
    assert torch.allclose(given.std(0), scores.std(0), rtol=1e-4)


def test_a_category_never_present_and_maps_that_never_vary_tell_images_apart_by_nothing():
    maps, scores = torch.randn(9, 4), torch.randn(9, 2)
    present = torch.zeros(9, 2, dtype=torch.bool)
    present[:4, 0] = True
    layer = made(present, maps, scores)
    assert layer.weight[0].any()
    assert not layer.weight[1].any()
    alike = made(present, torch.ones(9, 4), scores)
    assert not alike.weight.any()
    assert torch.allclose(alike.of_pooled(torch.randn(5, 4)), scores.mean(0))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_it_has_its_share_in_the_scores_and_none_in_the_losses(share: float):
    method, batch = ready(discriminant_share=share)
    outputs = method(batch.inputs)
    if share:
        beside = method.discriminant.of_pooled(batch.inputs.mean((2, 3)))
        expected = (1 - share) * outputs["network"] + share * beside
    else:
        assert method.discriminant is None
        expected = outputs["network"]
    assert torch.allclose(outputs["logits"], expected, atol=1e-5)
    alone, _ = ready(discriminant_share=0.0)
    terms, without = (m.losses(m(batch.inputs), batch, EARLY).terms for m in (method, alone))
    assert terms.keys() == without.keys()
    assert all(torch.equal(term, without[name]) for name, term in terms.items())


def test_labels_filled_by_own_score_move_it():
    (many, batch), (none, _) = ready(own_share=1.0), ready(own_share=0.0)
    scores = many.plain.of_pooled(batch.inputs.mean((2, 3)))
    present = (batch.labels > 0) | many.own.passing(scores, batch.labels)
    assert present.sum() > (batch.labels > 0).sum()
    expected = made(present, batch.inputs.mean((2, 3)), scores)
    assert torch.allclose(many.discriminant.weight, expected.weight, atol=1e-5)
    assert not torch.allclose(none.discriminant.weight, many.discriminant.weight)


def test_without_a_frozen_backbone_or_the_layer_beside_there_is_none():
    assert make("hst", freeze_backbone=False).discriminant is None
    assert make("hst", freeze_backbone=True, plain_beside=False).discriminant is None
    logits = make("hst", freeze_backbone=False)(batch_of().inputs)["logits"]
    assert logits.shape == (IMAGES, CATEGORIES)
