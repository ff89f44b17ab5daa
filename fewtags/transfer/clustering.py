"""k-means of each category's known present features: where prototypes come from (SPEC 4).

Categories of about the same number of features are clustered together, padded to the largest: (G, n, D). First by
sketches, random projections to a few dimensions that nearly keep distances, from several sets of seeds; with whole
features k-means then only finishes what is nearly done.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from fewtags.losses.contrastive import SMALLEST_NORM, unit

Metric = Literal["spherical", "euclidean"]
SEEDINGS = 4
"""Sets of first centres that are tried by sketches."""
SKETCH_SIZE = 64
SKETCH_ITERATIONS = 3
AT_REST = 1e-4
"""A group is at rest when a step brings its points nearer to their centres by less than this share."""
EQUALLY_TIGHT = 1e-5
"""Tries whose clusters differ by less than this share of their squared length are the same but for rounding."""
PADDING = 1.25
"""Categories are sketched together if the largest has at most about so many times the smallest's features."""
NEGLIGIBLE = 1e-6
"""Squared distances below this share of the largest squared length are those of equal points."""


class Points(NamedTuple):
    """The features of G categories, padded to the largest number of them."""

    values: Tensor
    """(G, n, D)"""
    squares: Tensor
    """(G, n): squared lengths."""
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
        centres = clusters(points, count, metric, _draws(together, count, seed))
        places = torch.tensor(together, device=features.device)
        found = centres.used.shape[1]
        prototypes[places, :found] = unit(centres.values) * centres.used.unsqueeze(2)
        filled[places] = centres.used.sum(1)
    return prototypes, filled


def clusters(points: Points, count: int, metric: Metric, draws: Tensor) -> Centres:
    """Points (G, n, D) → at most `count` centres of each group.

    Euclidean: minimises Σ ‖x - centre‖²; spherical: Σ (1 - cosine), on unit points with unit centres.
    """
    if points.values.shape[1] <= count:
        return Centres(points.values, points.real)
    sketches = as_points(points.values @ _projection(points.values), points.real)
    tries = _tries(sketches, count, draws.to(points.values.device))
    return _settled(points, _tightest(points, sketches, tries, metric), metric)


def _alike(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Categories with any features, in groups of about the same size; those with at most `count` together."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for index, size in enumerate(sizes):
        if size:
            groups[0 if size <= count else 1 + int(math.log(size / count, PADDING))].append(index)
    return list(groups.values())


def _padded(features: Tensor, members: Sequence[Tensor], metric: Metric) -> Points:
    """Features (M, D) and each group's rows → points (G, n, D)."""
    rows = pad_sequence(list(members), batch_first=True, padding_value=-1)  # (G, n)
    values = features[rows.clamp(min=0)].float()  # a copy: it may be scaled in place
    if metric == "spherical":
        values /= torch.linalg.vector_norm(values, dim=2, keepdim=True).clamp(min=SMALLEST_NORM)
    return as_points(values, rows >= 0)


def as_points(values: Tensor, real: Tensor) -> Points:
    return Points(values, torch.linalg.vector_norm(values, dim=2).square(), real)


def _draws(categories: Sequence[int], count: int, seed: int) -> Tensor:
    """(G, SEEDINGS, K, trials) uniform numbers, each category's from a generator of its own."""
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + index) for index in categories]
    trials = 2 + int(math.log(count))
    shape = (SEEDINGS, count, trials)
    return torch.stack([torch.rand(shape, generator=own, dtype=torch.float64) for own in generators])


def _projection(values: Tensor) -> Tensor:
    """(D, d): from features (..., D) to sketches, always the same; short features stay as they are."""
    size = values.shape[-1]
    if size <= 2 * SKETCH_SIZE:
        return torch.eye(size, device=values.device)
    drawn = torch.randn(size, SKETCH_SIZE, generator=torch.Generator().manual_seed(0))
    return drawn.to(values.device) / SKETCH_SIZE**0.5


def _tries(points: Points, count: int, draws: Tensor) -> Centres:
    """Points (G, n, d) → centres (G, tries, K, d) from each set of seeds, and which are used."""
    groups, tries = draws.shape[:2]
    every = Points(*(part.repeat_interleave(tries, 0) for part in points))  # (G · tries, n, d)
    settled = _settled(every, _seeds(every, count, draws.flatten(0, 1)), "euclidean", SKETCH_ITERATIONS)
    return Centres(*(part.view(groups, tries, *part.shape[1:]) for part in settled))


def _tightest(points: Points, sketches: Points, tries: Centres, metric: Metric) -> Centres:
    """The means (G, K, D) of the whole points that each group's best try puts together."""
    groups, size, count = tries.used.shape
    nearest = [
        _assign(sketches, Centres(*one))[0]
        for one in zip(tries.values.unbind(1), tries.used.unbind(1), strict=True)
    ]
    member = torch.cat([_members(own, points.real, count) for own in nearest], 1).to(points.values)
    sizes = member.sum(2).view(groups, size, count, 1)
    sums = (member @ points.values).view(groups, size, count, -1)
    means = sums / sizes.clamp(min=1)
    # Σ ‖x - mean‖² = Σ ‖x‖² - Σ_k ‖sum_k‖² / size_k: the tightest has the largest last term.
    tightness = (sums * means).sum((2, 3))  # (G, tries)
    # Several tries may find the same clusters: the first of them is taken, whatever the rounding.
    best = (tightness >= (1 - EQUALLY_TIGHT) * tightness.amax(1, keepdim=True)).int().argmax(1)
    group = torch.arange(groups, device=means.device)
    return Centres(_moved(means[group, best], metric), tries.used[group, best])


def _settled(points: Points, centres: Centres, metric: Metric, iterations: int = 50) -> Centres:
    """Lloyd's steps until every group is at rest. A group that is at rest stays, however long others move."""
    nearest, distance = _assign(points, centres)
    moves = torch.ones(len(points.values), dtype=torch.bool, device=nearest.device)
    for _ in range(iterations):
        means = _moved(_means(points, nearest, distance, centres.used), metric)
        centres = centres._replace(values=torch.where(moves[:, None, None], means, centres.values))
        before = distance.sum(1)
        nearest, distance = _assign(points, centres)
        moves &= before - distance.sum(1) > AT_REST * before
        if not moves.any():
            break
    return centres


def _moved(values: Tensor, metric: Metric) -> Tensor:
    """To where the metric compares them."""
    return unit(values) if metric == "spherical" else values


def _distances(points: Points, centres: Tensor) -> Tensor:
    """‖x - c‖² (G, n, k); on unit vectors 2·(1 - cosine), so one distance serves both metrics."""
    squares = points.squares.unsqueeze(2) + centres.square().sum(2).unsqueeze(1)
    return torch.baddbmm(squares, points.values, centres.transpose(1, 2), alpha=-2).clamp(min=0)


def _assign(points: Points, centres: Centres) -> tuple[Tensor, Tensor]:
    """Nearest centre (G, n) and squared distance to it (G, n), 0 for padding."""
    distances = _distances(points, centres.values).masked_fill(~centres.used.unsqueeze(1), math.inf)
    distance, nearest = distances.min(2)
    return nearest.where(points.real, 0), distance.where(points.real, 0)


def _means(points: Points, nearest: Tensor, distance: Tensor, used: Tensor) -> Tensor:
    """Mean of each centre's points (G, K, D); one that lost all its points moves to the worst served."""
    member = _members(nearest, points.real, used.shape[1]).to(points.values)
    sizes = member.sum(2)
    means = member @ points.values / sizes.clamp(min=1).unsqueeze(2)
    empty = (sizes == 0) & used
    turn = (empty.cumsum(1) - 1).clamp(min=0)  # the first empty one takes the worst served, and so on
    worst = distance.topk(used.shape[1], dim=1).indices.gather(1, turn)  # (G, K)
    return torch.where(empty.unsqueeze(2), _picked(points.values, worst), means)


def _members(nearest: Tensor, real: Tensor, count: int) -> Tensor:
    """Nearest centres (G, n) → (G, K, n) bool: which points belong to which."""
    centre = torch.arange(count, device=nearest.device).unsqueeze(1)
    return (nearest.unsqueeze(1) == centre) & real.unsqueeze(1)


def _picked(values: Tensor, rows: Tensor) -> Tensor:
    """Values (G, n, D), rows (G, k) → (G, k, D)."""
    return values[torch.arange(len(values), device=values.device).unsqueeze(1), rows]


def _seeds(points: Points, count: int, draws: Tensor) -> Centres:
    """Greedy k-means++: each next seed is the best of a few drawn with probability ∝ squared distance.

    Draws (G, K, trials). A seed is unused where the points have no further distinct value.
    """
    negligible = NEGLIGIBLE * points.squares.amax(1)  # (G,)
    first = (draws[:, 0, :1] * points.real.sum(1, keepdim=True)).long()  # (G, 1)
    chosen, used = [first], [torch.ones_like(negligible, dtype=torch.bool)]
    closest = _distances(points, _picked(points.values, first)).squeeze(2) * points.real  # (G, n)
    for step in range(1, count):
        used.append(closest.amax(1) > negligible)
        drawn = _drawn(closest, draws[:, step])  # (G, trials)
        distances = _distances(points, _picked(points.values, drawn))  # (G, n, trials)
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
