"""Category-specific features (SARL, SPEC 1): one vector per category from the backbone's map."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

SMALLEST_POOLED_MAP = 14


class CategoryFeatures(NamedTuple):
    features: Tensor
    """(B, C, D)"""
    attention: Tensor
    """(B, C, H, W): where each category looked."""
    logits: Tensor | None
    """(B, C): SA's second classifier; None with SD."""


class SemanticDecoupling(nn.Module):
    """SD: maps (B, D₀, H, W) → features f_c = Σ_n a_cn f_n, a_c = softmax_n(w · tanh(U f_n ⊙ V x_c)).

    f = batch norm(1×1 convolution(map)), x_c the word vector of category c (learned if none is given). The
    paper's P, b and f_a are linear after the tanh: they fold into w = P f_a, and the softmax cancels f_a·b.
    """

    words: Tensor
    category_axes: ClassVar = {"words": (0,)}

    def __init__(
        self,
        channels: int,
        categories: int,
        feature_size: int,
        joint_size: int,
        word_vectors: Tensor | None = None,
        word_size: int = 300,
        pool_map: bool = True,
    ):
        super().__init__()
        self.pool_map = pool_map
        self.reduce = nn.Conv2d(channels, feature_size, kernel_size=1, bias=False)
        self.norm = nn.BatchNorm2d(feature_size)
        register_words(self, categories, word_vectors, word_size)
        self.place_to_joint = nn.Linear(feature_size, joint_size, bias=False)
        self.word_to_joint = nn.Linear(self.words.shape[1], joint_size, bias=False)
        self.joint_to_score = nn.Linear(joint_size, 1, bias=False)

    def forward(self, maps: Tensor) -> CategoryFeatures:
        reduced = normalised(self.norm, self.reduce(pooled(maps, self.pool_map)))  # (B, D, H, W)
        places = reduced.flatten(2).transpose(1, 2)  # (B, N, D)
        scores = attention_scores(
            self.place_to_joint(places), self.word_to_joint(self.words), self.joint_to_score.weight[0]
        )  # (B, C, N)
        attention = scores.softmax(-1).to(places.dtype)
        return CategoryFeatures(attention @ places, attention.unflatten(2, reduced.shape[2:]), None)


class SemanticAttention(nn.Module):
    """SA: maps (B, D₀, H, W) → features f_c = Σ_n M_cn T(map)_n, M_c = σ(activation map), T a 1×1 convolution.

    The same activation maps, pooled over the places, are a second classifier.
    """

    category_axes: ClassVar = {"activation.weight": (0,), "activation.bias": (0,)}

    def __init__(
        self,
        channels: int,
        categories: int,
        feature_size: int,
        cam_pooling: Literal["max", "avg"] = "max",
        pool_map: bool = True,
    ):
        super().__init__()
        self.pool_map = pool_map
        self.cam_pooling = cam_pooling
        self.activation = nn.Conv2d(channels, categories, kernel_size=1)
        self.transform = nn.Conv2d(channels, feature_size, kernel_size=1)

    def forward(self, maps: Tensor) -> CategoryFeatures:
        maps = pooled(maps, self.pool_map)
        activation = self.activation(maps)  # (B, C, H, W)
        places = self.transform(maps).flatten(2).transpose(1, 2)  # (B, N, D)
        attention = torch.sigmoid(activation)
        logits = activation.amax((2, 3)) if self.cam_pooling == "max" else activation.mean((2, 3))
        return CategoryFeatures(attention.flatten(2) @ places, attention, logits)


def pooled(maps: Tensor, pool_map: bool) -> Tensor:
    """Maps (B, D₀, H, W) averaged 2×2 if asked for, unless min(H, W) < 14."""
    return functional.avg_pool2d(maps, 2) if pool_map and min(maps.shape[2:]) >= SMALLEST_POOLED_MAP else maps


def register_words(module: nn.Module, categories: int, word_vectors: Tensor | None, word_size: int) -> None:
    """Give `module` its `words` (C, E): a buffer where vectors are given, else a parameter to learn."""
    if word_vectors is None:
        module.words = nn.Parameter(0.4 * torch.randn(categories, word_size))  # the spread of GloVe's vectors
    else:
        module.register_buffer("words", _checked(word_vectors, categories))


def _checked(word_vectors: Tensor, categories: int) -> Tensor:
    if word_vectors.ndim != 2 or len(word_vectors) != categories:
        raise ValueError(f"word vectors of shape {tuple(word_vectors.shape)} for {categories} categories")
    return word_vectors.detach().float().clone()


def attention_scores(places: Tensor, words: Tensor, weights: Tensor) -> Tensor:
    """U f (B, N, J), V x (C, J), w (J,) → w · tanh(U f_n ⊙ V x_c), (B, C, N).

    The (B, C, N, J) tensor is made category by category, and again for the gradient, never kept.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return torch.tanh(places.unsqueeze(1) * words[:, None]) @ weights  # a plain formula exports to anything
    batch, count, joint = places.shape
    flat = places.reshape(batch * count, joint)
    scores: Tensor = _JointScores.apply(flat.float(), words.float(), weights.float())  # (C, B·N)
    return scores.view(len(words), batch, count).transpose(0, 1)


class _JointScores(torch.autograd.Function):
    """places (M, J), words (C, J), weights (J,) → Σ_j w_j tanh(places_mj words_cj), (C, M).

    tanh x = 2 σ(2x) - 1, and torch's σ is three times as fast on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, places: Tensor, words: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(places, words, weights)
        scores = places.new_empty(len(words), len(places))
        with torch.autocast(places.device.type, enabled=False):
            for category, word in enumerate(2 * words):
                scores[category] = torch.sigmoid_(places * word) @ weights
        return scores.mul_(2).sub_(weights.sum())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """s = σ(2x), q = g s(1 - s): ∂w = Σ g (2s - 1), ∂places = 4w Σ_c q·words, ∂words = 4w Σ_m q·places."""
        places, words, weights = ctx.saved_tensors
        to_places, to_words, to_weights = (torch.zeros_like(t) for t in (places, words, weights))
        with torch.autocast(places.device.type, enabled=False):
            for category, (word, grad) in enumerate(zip(words, grads[0], strict=True)):
                half = torch.sigmoid_(places * (2 * word))  # (M, J)
                to_weights += grad @ half
                slope = half.addcmul_(half, half, value=-1).mul_(grad.unsqueeze(1))
                to_places.addcmul_(slope, word)
                to_words[category] = slope.mul_(places).sum(0)
        to_weights.mul_(2).sub_(grads[0].sum())
        return to_places.mul_(4 * weights), to_words.mul_(4 * weights), to_weights


def normalised(norm: nn.BatchNorm2d, maps: Tensor) -> Tensor:
    """Batch norm. One image with one place has no variance: it is seen with the running statistics."""
    if type(norm) is nn.BatchNorm2d and norm.training and maps.numel() == maps.shape[1]:
        return functional.batch_norm(
            maps, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps
        )
    return norm(maps)
