import numpy as np
import pytest
import torch

from fewtags.nn.classifier import PooledClassifier, base_rate_logits, pooled_classifier, shortcut_of
from fewtags.recipe import Recipe
from tests.oracles.own_transfer import base_rates


def test_it_starts_at_the_base_rates():
    labels = np.random.default_rng(0).integers(-1, 2, (40, 3))
    layer = PooledClassifier(5, base_rate_logits(torch.from_numpy(labels)), centred=True)
    scores = torch.sigmoid(layer(torch.randn(4, 5, 2, 3)))
    for row in scores.tolist():
        assert row == pytest.approx(base_rates(labels.tolist()), abs=1e-6)


@pytest.mark.parametrize("value", [0, 1, -1])
def test_where_only_one_kind_is_known_it_starts_undecided(value):
    assert base_rate_logits(torch.full((6, 2), value)).tolist() == [0, 0]


def test_the_mean_is_that_of_all_images_seen():
    layer = PooledClassifier(3, torch.zeros(2), centred=True).train()
    batches = [torch.randn(size, 3, 2, 2) + 5 for size in (4, 7, 2)]
    for batch in batches:
        layer(batch)
    assert torch.allclose(layer.mean, torch.cat(batches).mean((0, 2, 3)), atol=1e-5)
    before = layer.mean.clone()
    layer.eval()(torch.randn(5, 3, 2, 2))
    assert torch.equal(layer.mean, before)


def test_scores_are_of_the_map_less_its_mean():
    layer = PooledClassifier(3, torch.tensor([0.5, -1.0]), centred=True).eval()
    torch.nn.init.normal_(layer.weight)
    layer.mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
    pooled = torch.randn(4, 3)
    expected = [
        [
            sum(w * (x - m) for w, x, m in zip(weights, row, (1.0, 2.0, 3.0), strict=True)) + bias
            for weights, bias in zip(layer.weight.tolist(), (0.5, -1.0), strict=True)
        ]
        for row in pooled.tolist()
    ]
    assert torch.allclose(layer.of_pooled(pooled), torch.tensor(expected), atol=1e-5)
    assert torch.allclose(layer(pooled[:, :, None, None].expand(4, 3, 2, 5)), torch.tensor(expected), atol=1e-5)


@pytest.mark.parametrize("peak", [0.0, 0.2, 1.0])
def test_the_best_place_has_its_share(peak):
    layer = PooledClassifier(3, torch.tensor([0.5, -1.0]), centred=True, peak=peak).eval()
    torch.nn.init.normal_(layer.weight)
    torch.nn.init.normal_(layer.mean)
    maps = torch.randn(4, 3, 2, 5)
    weight, mean = layer.weight.tolist(), layer.mean.tolist()
    for image, row in zip(maps.flatten(2).tolist(), layer(maps).tolist(), strict=True):
        for w, bias, score in zip(weight, (0.5, -1.0), row, strict=True):
            places = [sum(w[d] * (image[d][k] - mean[d]) for d in range(3)) for k in range(10)]
            assert score == pytest.approx((1 - peak) * sum(places) / 10 + peak * max(places) + bias, abs=1e-5)


def test_the_shortcut_has_a_peak_and_plain_has_none():
    recipe, labels = Recipe(shortcut_peak=0.3), torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    assert shortcut_of(recipe, 3, labels).peak == 0.3
    assert pooled_classifier(recipe, 3, labels).peak == 0
    assert shortcut_of(Recipe(shortcut=False), 3, labels) is None


def test_not_centred_it_takes_nothing_off():
    layer = PooledClassifier(3, torch.zeros(2), centred=False).train()
    layer(torch.ones(4, 3, 1, 1))
    assert layer.mean.tolist() == [0, 0, 0]


def test_printed_recipes_start_undecided_and_take_nothing_off():
    for name in ("paper", "released"):
        recipe = Recipe.load(name)
        assert (recipe.first_scores, recipe.centre_pooled, recipe.shortcut_peak) == ("undecided", False, 0)
        assert (recipe.own_share, recipe.plain_beside) == (0, False)
        assert (recipe.discriminant_share, recipe.plausible_share) == (0, 0)
