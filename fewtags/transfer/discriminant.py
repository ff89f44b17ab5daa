"""A linear discriminant of each category: which way its images lie from all others (Fisher, 1936).

Where a category's images lie, its few present labels say, known and filled ones. How descriptions of images vary
together, which is most of what a classifier has to learn, all training images say, whatever is known of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewtags.metrics.average_precision import average_precision
from fewtags.nn.backbone_classes import BackboneClasses

RIDGES = tuple(2.0**power for power in range(8))
"""Added to every direction's variance, in mean variances: directions that hardly vary are not to be trusted. The
fewer present labels there are, the less; which is best, known labels say that are left out one by one."""
USUAL_RIDGE = 16.0
"""Where they cannot say."""
RANKED = 3
"""Present labels by which a category has a say in the ridge. Of two, each left out has the other's score: such a
tie is broken by rounding alone, which differs from machine to machine."""
WINDOWS = 3
"""Along each side of a map."""
COMPARED = 128
"""Numbers of an image by which it is compared with others, at most."""


class Description(nn.Module):
    """Maps (B, channels, H, W) → (B, F): what a discriminant reads of an image, centred over the training images.

    - Roots of the pooled map, √|x| with the sign of x: a feature twice as strong does not say twice as much.
    - Roots of the probabilities that the backbone gives the classes it was trained to tell apart, if it has any: a
      straight line between two of those is Hellinger's distance, and few classes describe an image.
    - The same of windows, of each class the greatest: a small thing fills one window of many.

    Each of them is scaled to a mean variance of 1.
    """

    class_weight: Tensor
    """(K, channels); K = 0 without classes."""
    class_bias: Tensor
    mean: Tensor
    scales: Tensor
    """(parts,)"""

    def __init__(self, channels: int, classes: BackboneClasses | None):
        super().__init__()
        weight, bias = classes or (torch.zeros(0, channels), torch.zeros(0))
        self.sizes = [channels, len(bias), len(bias)] if len(bias) else [channels]
        self.register_buffer("class_weight", weight.detach().clone())
        self.register_buffer("class_bias", bias.detach().clone())
        self.register_buffer("mean", torch.zeros(self.size))
        self.register_buffer("scales", torch.ones(len(self.sizes)))

    @property
    def size(self) -> int:
        """F"""
        return sum(self.sizes)

    def forward(self, maps: Tensor) -> Tensor:
        return self._scaled(self.roots(maps)) - self.mean

    def roots(self, maps: Tensor) -> Tensor:
        """(B, channels, H, W) → (B, F), neither scaled nor centred."""
        pooled = maps.mean((2, 3))
        parts = [pooled.sign() * pooled.abs().sqrt()]
        if len(self.class_bias):
            parts += [self._seen(pooled), self._seen(windows(maps)).amax(1)]
        return torch.cat(parts, 1)

    def _seen(self, pooled: Tensor) -> Tensor:
        """(…, channels) → (…, K)"""
        return functional.linear(pooled, self.class_weight, self.class_bias).softmax(-1).sqrt()

    def _scaled(self, roots: Tensor) -> Tensor:
        parts = zip(roots.split(self.sizes, 1), self.scales, strict=True)
        return torch.cat([part * scale for part, scale in parts], 1)

    @torch.no_grad()
    def learn(self, roots: Tensor, classes: bool = True) -> Tensor:
        """The roots (n, F) of the training images set mean and scales; → their descriptions (n, F).

        `classes`: whether these count; else their part is 0.
        """
        for place, part in enumerate(roots.split(self.sizes, 1)):
            spread = part.var(0, correction=0).mean().sqrt()
            self.scales[place] = torch.where((spread > 0) & (classes or place == 0), 1 / spread, 0.0)
        described = self._scaled(roots)
        self.mean.copy_(described.mean(0))
        return described - self.mean


def windows(maps: Tensor) -> Tensor:
    """(B, channels, H, W) → (B, WINDOWS², channels): means over overlapping windows that cover the map.

    As adaptive average pooling; in slices, which export to anything.
    """
    rows, columns = ([_bounds(place, side) for place in range(WINDOWS)] for side in maps.shape[2:])
    return torch.stack([maps[:, :, a:b, c:d].mean((2, 3)) for a, b in rows for c, d in columns], 1)


def _bounds(place: int, side: int) -> tuple[int, int]:
    return place * side // WINDOWS, -(-(place + 1) * side // WINDOWS)


class Discriminant(nn.Module):
    """Descriptions (B, F) → scores (B, C)."""

    category_axes: ClassVar = {"weight": (0,), "bias": (0,)}

    def __init__(self, categories: int, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(categories, size), requires_grad=False)  # made, not trained
        self.bias = nn.Parameter(torch.zeros(categories), requires_grad=False)

    def forward(self, described: Tensor) -> Tensor:
        return functional.linear(described, self.weight, self.bias)

    @property
    def available(self) -> Tensor:
        """(C,) bool: categories whose images lie anywhere."""
        return self.weight.any(1)

    @torch.no_grad()
    def learn(self, spread: Spread, ridge: float, present: Tensor, scores: Tensor) -> Tensor:
        """Weights w_c = (Σ + ridge · mean variance · I)⁻¹ (mean of c's images), scaled.

        Of training images: `spread_of` their descriptions; present (n, C) bool; scores (n, C) of a classifier,
        whose mean and standard deviation the new scores get, so that the two can be mixed. A category that is
        nowhere present has the same score everywhere. Returns the scores (n, C) that each image has when it is
        left out of the means.
        """
        weight = spread.trust(ridge).unsqueeze(1) * towards(spread, present)  # (F, C)
        width = (spread.along @ weight).std(0, correction=0)
        scale = torch.where(width > 0, scores.std(0, correction=0) / width, 0.0)
        self.weight.copy_((spread.directions @ (weight * scale)).T)
        self.bias.copy_(scores.mean(0))
        return left_out(spread, ridge, present) * scale + self.bias


class Discriminants(nn.Module):
    """Two that read the same: one of known labels alone, beside a classifier that learns from those alone; one of
    known and filled labels, beside the network that learns from both. Each has `share` of the scores."""

    comparison: Tensor
    """(F, P): what `comparison_of` gives."""

    def __init__(self, channels: int, categories: int, classes: BackboneClasses | None, share: float):
        super().__init__()
        self.share = share
        self.description = Description(channels, classes)
        self.of_known = Discriminant(categories, self.description.size)
        self.of_filled = Discriminant(categories, self.description.size)
        size = self.description.size
        self.register_buffer("comparison", torch.zeros(size, min(size, COMPARED)))

    def forward(self, maps: Tensor, plain: Tensor, network: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Maps (B, channels, H, W), scores (B, C) of the plain classifier and the network → both, mixed; the
        likeness (B, C) to a category's known images, from 0 to 1, NaN if it has none; and by what images are
        compared, (B, P): the greater the scalar product of two, the more one speaks for the other."""
        described = self.description(maps)
        known = self.of_known(described)
        likeness = torch.where(self.of_known.available, torch.sigmoid(known), torch.nan)
        mixed = self._mixed(plain, known), self._mixed(network, self.of_filled(described))
        return *mixed, likeness, described @ self.comparison

    @torch.no_grad()
    def learn(self, roots: Tensor, labels: Tensor, plain: Tensor, choose: Callable[[Tensor], Tensor]) -> Tensor:
        """Training images: roots (n, F) of their maps, labels (n, C), scores (n, C) of the plain classifier.

        `choose` says what is filled, (n, C) bool, by the scores with the share of what is known. Returns the
        likeness (n, C) of each image to a category's other known images, NaN if it has none.
        """
        images, known = self._describe(roots, labels), labels > 0
        self.comparison.copy_(comparison_of(images.spread, images.ridge, self.comparison.shape[1]))
        others = self.of_known.learn(images.spread, images.ridge, known, plain)
        scores = self._mixed(plain, self.of_known(images.described))
        self.of_filled.learn(images.spread, images.ridge, known | choose(scores), scores)
        left = known.sum(0) - known.int() > 0
        return torch.where(left, torch.sigmoid(others), torch.nan)

    def _describe(self, roots: Tensor, labels: Tensor) -> Described:
        """With the backbone's classes, if it has any, or without: by whichever known labels are ranked better.

        What a backbone was trained on may have nothing to do with the images at hand.
        """
        choices = (True, False) if len(self.description.class_bias) else (True,)
        found = [described_by(self.description, roots, labels, classes) for classes in choices]
        best = max(found, key=lambda one: one.quality)
        self.description.learn(roots, best.classes)
        return best

    def _mixed(self, scores: Tensor, discriminant: Tensor) -> Tensor:
        return torch.lerp(scores, discriminant.to(scores.dtype), self.share)


class Spread(NamedTuple):
    """How n centred descriptions vary: along F directions that do not vary together."""

    along: Tensor
    """(n, F): each image's place along each direction."""
    variances: Tensor
    """(F,)"""
    directions: Tensor
    """(F, F), a column each."""

    def trust(self, ridge: float) -> Tensor:
        """(F,): 1 / (variance + ridge · mean variance)."""
        extra = (ridge * self.variances.mean()).clamp(min=torch.finfo(self.variances.dtype).tiny)
        return 1 / (self.variances + extra)


@torch.no_grad()
def spread_of(described: Tensor) -> Spread:
    """Centred descriptions (n, F)."""
    variances, directions = torch.linalg.eigh(described.T @ described / len(described))
    return Spread(described @ directions, variances.clamp(min=0), directions)


def towards(spread: Spread, present: Tensor) -> Tensor:
    """Present (n, C) bool → (F, C): the mean of each category's images, along each direction."""
    shown = present.to(spread.along)
    return spread.along.T @ shown / shown.sum(0).clamp(min=1)


def comparison_of(spread: Spread, ridge: float, count: int) -> Tensor:
    """(F, count): a category's score of x is the mean of x·Σ⁻¹y over its images y; that is the scalar product of
    x and y, both times this. Nearly so, where the `count` directions that say most are not all."""
    trust = spread.trust(ridge)
    most = (spread.variances * trust).topk(count).indices
    return spread.directions[:, most] * trust[most].sqrt()


def left_out(spread: Spread, ridge: float, present: Tensor) -> Tensor:
    """Scores (n, C), not scaled, in which an image has no part in the means; 0 where no other image is left.

    Of n images' mean, (n s - x·Σ⁻¹x) / (n - 1) is what is left of a score s without image x.
    """
    trust, count = spread.trust(ridge), present.sum(0)
    scores = (spread.along * trust) @ towards(spread, present)  # (n, C)
    own = (spread.along.square() @ trust).unsqueeze(1)  # (n, 1)
    without = (scores * count - own) / (count - 1).clamp(min=1)
    return torch.where(present, torch.where(count > 1, without, 0.0), scores)


class Described(NamedTuple):
    """Training images as discriminants read them."""

    classes: bool
    """Whether the backbone's classes count."""
    described: Tensor
    """(n, F)"""
    spread: Spread
    ridge: float
    quality: float
    """mAP of the known labels."""


@torch.no_grad()
def described_by(description: Description, roots: Tensor, labels: Tensor, classes: bool = True) -> Described:
    """Roots (n, F) and labels (n, C) of training images."""
    described = description.learn(roots, classes)
    spread = spread_of(described)
    return Described(classes, described, spread, *best_ridge(spread, labels))


def best_ridge(spread: Spread, labels: Tensor) -> tuple[float, float]:
    """Labels (n, C) → the ridge by which they are ranked best, each image left out of the means; and how well.

    That is the greatest mAP over the categories with enough present labels and an absent one; 0 without any.
    """
    labels = labels[:, ((labels > 0).sum(0) >= RANKED) & (labels < 0).any(0)]
    if not labels.shape[1]:
        return USUAL_RIDGE, 0.0

    def quality(ridge: float) -> float:
        scores = left_out(spread, ridge, labels > 0)
        return float(average_precision(scores.cpu().numpy(), labels.cpu().numpy()).mean())

    found = {ridge: quality(ridge) for ridge in RIDGES}
    best = max(found, key=found.__getitem__)
    return best, found[best]
