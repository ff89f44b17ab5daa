"""k-means of each category's known present features: where prototypes come from (SPEC 4)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from fewtags.losses.contrastive import unit

Metric = Literal["spherical", "euclidean"]
RESTARTS = 3


def category_prototypes(
    features: Tensor,
    category: Tensor,
    categories: int,
    count: int,
    metric: Metric = "spherical",
    seed: int = 0,
    iterations: int = 50,
) -> tuple[Tensor, Tensor]:
    """Features (M, D) of categories (M,) → unit prototypes (C, K, D), zero padded, and how many each has (C,).

    A category with at most K features gets each of them; with none, none. Each category draws from a generator
    of its own, so that its prototypes do not depend on the others. No atomics: the same on every run.
    """
    prototypes = features.new_zeros(categories, count, features.shape[1], dtype=torch.float32)
    filled = torch.zeros(categories, dtype=torch.long, device=features.device)
    order = torch.argsort(category, stable=True)
    sizes = torch.bincount(category, minlength=categories).tolist()
    for index, members in enumerate(order.split(sizes)):
        if len(members):
            generator = torch.Generator().manual_seed(seed * 1_000_003 + index)
            centres = cluster(features[members].float(), count, metric, generator, iterations)
            prototypes[index, : len(centres)] = unit(centres)
            filled[index] = len(centres)
    return prototypes, filled


def cluster(
    points: Tensor, count: int, metric: Metric, generator: torch.Generator, iterations: int = 50
) -> Tensor:
    """Points (n, D) → at most `count` centres (k, D): the tightest of a few k-means from k-means++ seeds.

    Euclidean: minimises Σ ‖x - centre‖²; spherical: Σ (1 - cosine), on unit points with unit centres.
    """
    points = unit(points) if metric == "spherical" else points
    if len(points) <= count:
        return points
    tries = [_k_means(points, _seeds(points, count, generator), metric, iterations) for _ in range(RESTARTS)]
    return min(tries, key=lambda centres: float(_assign(points, centres)[1].sum()))


def _k_means(points: Tensor, centres: Tensor, metric: Metric, iterations: int) -> Tensor:
    previous = None
    for _ in range(iterations):
        nearest, distance = _assign(points, centres)
        if previous is not None and torch.equal(nearest, previous):
            break
        previous = nearest
        centres = _means(points, nearest, distance, len(centres))
        centres = unit(centres) if metric == "spherical" else centres
    return centres


def _distances(points: Tensor, centres: Tensor) -> Tensor:
    """‖x - c‖² (n, k); on unit vectors 2·(1 - cosine), so one distance serves both metrics."""
    squares = points.square().sum(1, keepdim=True) + centres.square().sum(1) - 2 * points @ centres.T
    return squares.clamp(min=0)


def _assign(points: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Nearest centre (n,) and squared distance to it (n,)."""
    distance, nearest = _distances(points, centres).min(1)
    return nearest, distance


def _means(points: Tensor, nearest: Tensor, distance: Tensor, count: int) -> Tensor:
    """Mean of each centre's points (k, D); one that lost all its points moves to the worst served."""
    member = torch.nn.functional.one_hot(nearest, count).to(points.dtype)  # (n, k); a product has no atomics
    sizes = member.sum(0)
    means = (member.T @ points) / sizes.clamp(min=1).unsqueeze(1)
    empty = torch.nonzero(sizes == 0).squeeze(1)
    means[empty] = points[distance.topk(len(empty)).indices]
    return means


def _seeds(points: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Greedy k-means++: each next seed is the best of a few drawn with probability ∝ squared distance.

    Fewer than `count` where the points have fewer distinct values.
    """
    trials = 2 + int(math.log(count))
    chosen = [int(torch.randint(len(points), (1,), generator=generator))]
    closest = _distances(points, points[chosen]).squeeze(1)  # (n,)
    negligible = 1e-6 * points.square().sum(1).max()
    while len(chosen) < count and closest.max() > negligible:
        chances = closest.clamp(min=0).double().cpu()
        drawn = torch.multinomial(chances, trials, replacement=True, generator=generator).to(points.device)
        after = torch.minimum(closest.unsqueeze(1), _distances(points, points[drawn]))  # (n, trials)
        best = int(after.sum(0).argmin())
        chosen.append(int(drawn[best]))
        closest = after[:, best]
    return points[chosen]
