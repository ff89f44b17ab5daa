"""k-means of each category's known present features: where prototypes come from (SPEC 4).

Categories of about the same number of features are clustered together, padded to the largest: (G, n, D).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from fewtags.losses.contrastive import unit

Metric = Literal["spherical", "euclidean"]
SEEDINGS = 3
"""Sets of first centres that are tried; k-means goes on from the tightest."""
PADDING = 1.5
"""Categories are clustered together if the largest has at most about so many times the smallest's features."""
NEGLIGIBLE = 1e-6
"""Squared distances below this share of the largest squared length are those of equal points."""


class Points(NamedTuple):
    """The features of G categories, padded to the largest number of them."""

    values: Tensor
    """(G, n, D)"""
    real: Tensor
    """(G, n) bool: False where it is padding."""


class Centres(NamedTuple):
    values: Tensor
    """(G, K, D)"""
    used: Tensor
    """(G, K) bool: False for those a category has too few distinct points for."""


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

    A category with at most K features gets each of them; with none, none. Each category draws numbers of its own,
    so that its prototypes do not depend on the others. No atomics: the same on every run.
    """
    prototypes = features.new_zeros(categories, count, features.shape[1], dtype=torch.float32)
    filled = torch.zeros(categories, dtype=torch.long, device=features.device)
    sizes = torch.bincount(category, minlength=categories).tolist()
    members = torch.argsort(category, stable=True).split(sizes)
    for together in _alike(sizes, count):
        points = _padded(features, [members[index] for index in together], metric)
        centres = cluster(points, count, metric, _draws(together, count, seed), iterations)
        places = torch.tensor(together, device=features.device)
        found = centres.used.shape[1]
        prototypes[places, :found] = unit(centres.values) * centres.used.unsqueeze(2)
        filled[places] = centres.used.sum(1)
    return prototypes, filled


def _alike(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Categories with any features, in groups of about the same size; those with at most `count` together."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for index, size in enumerate(sizes):
        if size:
            groups[0 if size <= count else 1 + int(math.log(size / count, PADDING))].append(index)
    return list(groups.values())


def _padded(features: Tensor, members: Sequence[Tensor], metric: Metric) -> Points:
    """Features (M, D) and each group's rows → points (G, n, D)."""
    rows = torch.nn.utils.rnn.pad_sequence(list(members), batch_first=True, padding_value=-1)  # (G, n)
    values = features[rows.clamp(min=0)].float()
    return Points(unit(values) if metric == "spherical" else values, rows >= 0)


def _draws(categories: Sequence[int], count: int, seed: int) -> Tensor:
    """(G, SEEDINGS, K, trials) uniform numbers, each category's from a generator of its own."""
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + index) for index in categories]
    trials = 2 + int(math.log(count))
    shape = (SEEDINGS, count, trials)
    return torch.stack([torch.rand(shape, generator=own, dtype=torch.float64) for own in generators])


def cluster(points: Points, count: int, metric: Metric, draws: Tensor, iterations: int = 50) -> Centres:
    """Points (G, n, D) → at most `count` centres of each group.

    Euclidean: minimises Σ ‖x - centre‖²; spherical: Σ (1 - cosine), on unit points with unit centres.
    """
    if points.values.shape[1] <= count:
        return Centres(*points)
    centres, previous = _best_seeds(points, count, draws.to(points.values.device)), None
    for _ in range(iterations):
        nearest, distance = _assign(points, centres)
        if previous is not None and torch.equal(nearest, previous):
            break
        previous = nearest
        means = _means(points, nearest, distance, centres.used)
        centres = centres._replace(values=unit(means) if metric == "spherical" else means)
    return centres


def _distances(points: Tensor, centres: Tensor) -> Tensor:
    """‖x - c‖² (G, n, k); on unit vectors 2·(1 - cosine), so one distance serves both metrics."""
    squares = points.square().sum(2, keepdim=True) + centres.square().sum(2).unsqueeze(1)
    return torch.baddbmm(squares, points, centres.transpose(1, 2), alpha=-2).clamp(min=0)


def _assign(points: Points, centres: Centres) -> tuple[Tensor, Tensor]:
    """Nearest centre (G, n) and squared distance to it (G, n), 0 for padding."""
    distances = _distances(points.values, centres.values).masked_fill(~centres.used.unsqueeze(1), math.inf)
    distance, nearest = distances.min(2)
    return nearest.where(points.real, 0), distance.where(points.real, 0)


def _means(points: Points, nearest: Tensor, distance: Tensor, used: Tensor) -> Tensor:
    """Mean of each centre's points (G, K, D); one that lost all its points moves to the worst served."""
    member = torch.nn.functional.one_hot(nearest, used.shape[1]) * points.real.unsqueeze(2)  # (G, n, K)
    sizes = member.sum(1)
    means = member.to(points.values).transpose(1, 2) @ points.values / sizes.clamp(min=1).unsqueeze(2)
    empty = (sizes == 0) & used
    turn = (empty.cumsum(1) - 1).clamp(min=0)  # the first empty one takes the worst served, and so on
    worst = distance.topk(used.shape[1], dim=1).indices.gather(1, turn)  # (G, K)
    return torch.where(empty.unsqueeze(2), _picked(points.values, worst), means)


def _picked(values: Tensor, rows: Tensor) -> Tensor:
    """Values (G, n, D), rows (G, k) → (G, k, D)."""
    return values[torch.arange(len(values), device=values.device).unsqueeze(1), rows]


def _best_seeds(points: Points, count: int, draws: Tensor) -> Centres:
    """The tightest of some sets of seeds."""
    tries = [_seeds(points, count, own) for own in draws.unbind(1)]
    spread = torch.stack([_assign(points, seeds)[1].sum(1) for seeds in tries])  # (tries, G)
    best, group = spread.argmin(0), torch.arange(len(points.values), device=spread.device)
    return Centres(*(torch.stack(parts)[best, group] for parts in zip(*tries, strict=True)))


def _seeds(points: Points, count: int, draws: Tensor) -> Centres:
    """Greedy k-means++: each next seed is the best of a few drawn with probability ∝ squared distance.

    Draws (G, K, trials). A seed is unused where the points have no further distinct value.
    """
    negligible = NEGLIGIBLE * points.values.square().sum(2).amax(1)  # (G,)
    first = (draws[:, 0, :1] * points.real.sum(1, keepdim=True)).long()  # (G, 1)
    chosen, used = [first], [torch.ones_like(negligible, dtype=torch.bool)]
    closest = _distances(points.values, _picked(points.values, first)).squeeze(2) * points.real  # (G, n)
    for step in range(1, count):
        used.append(closest.amax(1) > negligible)
        drawn = _drawn(closest, draws[:, step])  # (G, trials)
        distances = _distances(points.values, _picked(points.values, drawn))  # (G, n, trials)
        after = torch.minimum(closest.unsqueeze(2), distances)
        best = after.sum(1).argmin(1, keepdim=True)  # (G, 1)
        chosen.append(drawn.gather(1, best))
        closest = after.gather(2, best.unsqueeze(1).expand(-1, closest.shape[1], -1)).squeeze(2) * points.real
    return Centres(_picked(points.values, torch.cat(chosen, 1)), torch.stack(used, 1))


def _drawn(weights: Tensor, uniform: Tensor) -> Tensor:
    """Weights (G, n), uniform numbers (G, trials) → rows (G, trials), each with probability ∝ its weight."""
    reached = weights.double().cumsum(1)
    rows = torch.searchsorted(reached, uniform * reached[:, -1:], right=True)
    return rows.clamp(max=weights.shape[1] - 1)
