import numpy as np
import pytest
import torch

from fewtags.nn.category_features import (
    SemanticAttention,
    SemanticDecoupling,
    attention_scores,
    pooled,
)
from tests.oracles import category_features as oracle

CHANNELS, CATEGORIES, SIZE, JOINT = 12, 5, 8, 6


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def test_decoupling_equals_the_unfolded_formula():
    module = SemanticDecoupling(CHANNELS, CATEGORIES, SIZE, JOINT, word_size=7).double().eval()
    rng = np.random.default_rng(0)
    project, score = rng.normal(size=(4, JOINT)), rng.normal(size=4)
    module.joint_to_score.weight.data[0] = torch.from_numpy(score @ project)  # P and f_a folded into w
    maps = torch.randn(2, CHANNELS, 3, 4, dtype=torch.float64)
    found = module(maps)
    places = module.norm(module.reduce(maps)).flatten(2).transpose(1, 2).detach().numpy()
    weights = [
        p.detach().numpy() for p in (module.words, module.place_to_joint.weight, module.word_to_joint.weight)
    ]
    for image in range(2):
        features, attention = oracle.semantic_decoupling(
            places[image], *weights, project, rng.normal(size=4), score, rng.normal()
        )
        assert np.allclose(found.features[image].detach().numpy(), features, atol=1e-5)
        assert np.allclose(found.attention[image].flatten(1).detach().numpy(), attention, atol=1e-5)
    assert found.logits is None


def test_recomputed_gradient_equals_autograd():
    shapes = ((3, 7, JOINT), (CATEGORIES, JOINT), (JOINT,))
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    copies = [value.detach().clone().requires_grad_() for value in inputs]
    ours = attention_scores(*inputs)
    plain = torch.tanh(copies[0].unsqueeze(1) * copies[1][:, None]) @ copies[2]
    assert torch.allclose(ours, plain, atol=1e-6)
    grad = torch.randn_like(ours)
    ours.backward(grad)
    plain.backward(grad)
    for mine, expected in zip(inputs, copies, strict=True):
        assert torch.allclose(mine.grad, expected.grad, atol=1e-5)


def test_the_tanh_is_not_kept_for_the_gradient():
    kept = []
    module = SemanticDecoupling(CHANNELS, CATEGORIES, SIZE, JOINT)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        module(torch.randn(2, CHANNELS, 7, 7))
    assert max(kept) < 2 * 49 * CATEGORIES * JOINT


def test_exported_formula_is_the_same():
    module = SemanticDecoupling(CHANNELS, CATEGORIES, SIZE, JOINT).eval()
    maps = torch.randn(2, CHANNELS, 3, 3)
    program = torch.export.export(module, (maps,))
    assert torch.allclose(program.module()(maps).features, module(maps).features, atol=1e-5)


def test_mixed_precision_matches():
    module = SemanticDecoupling(CHANNELS, CATEGORIES, SIZE, JOINT).eval()
    maps = torch.randn(2, CHANNELS, 3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = module(maps).features
    low.float().sum().backward()
    assert torch.allclose(low.float(), module(maps).features, atol=0.1)
    assert torch.isfinite(module.words.grad).all()


def test_given_words_are_a_buffer_and_learned_ones_a_parameter():
    given = SemanticDecoupling(CHANNELS, CATEGORIES, SIZE, JOINT, torch.ones(CATEGORIES, 4))
    learned = SemanticDecoupling(CHANNELS, CATEGORIES, SIZE, JOINT, word_size=9)
    assert "words" in dict(given.named_buffers())
    assert "words" not in dict(given.named_parameters())
    assert dict(learned.named_parameters())["words"].shape == (CATEGORIES, 9)
    with pytest.raises(ValueError, match="for 5 categories"):
        SemanticDecoupling(CHANNELS, CATEGORIES, SIZE, JOINT, torch.ones(4, 4))


@pytest.mark.parametrize("pooling", ["max", "avg"])
def test_attention_equals_the_loop(pooling):
    module = SemanticAttention(CHANNELS, CATEGORIES, SIZE, pooling).double()
    maps = torch.randn(2, CHANNELS, 3, 4, dtype=torch.float64)
    found = module(maps)
    weights = [
        p.detach().squeeze().numpy()
        for layer in (module.activation, module.transform)
        for p in (layer.weight, layer.bias)
    ]
    for image in range(2):
        places = maps[image].flatten(1).T.numpy()
        features, scores = oracle.semantic_attention(places, *weights)
        assert np.allclose(found.features[image].detach().numpy(), features)
        logits = scores.max(1) if pooling == "max" else scores.mean(1)
        assert np.allclose(found.logits[image].detach().numpy(), logits)
        assert np.allclose(found.attention[image].flatten(1).detach().numpy(), 1 / (1 + np.exp(-scores)))


@pytest.mark.parametrize(
    ("side", "asked", "expected"), [(14, True, 7), (13, True, 13), (14, False, 14), (16, True, 8)]
)
def test_small_maps_are_not_pooled(side, asked, expected):
    maps = torch.randn(1, 2, side, side + 2)
    smaller = pooled(maps, asked)
    assert smaller.shape[2] == expected
    if expected != side:
        assert smaller[0, 0, 0, 0].item() == pytest.approx(maps[0, 0, :2, :2].mean().item())
