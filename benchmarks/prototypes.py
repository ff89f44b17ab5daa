"""Prototypes of all categories beside a loop over scikit-learn's KMeans: `python -m benchmarks.prototypes`.

Both cluster the same unit vectors. What is compared is Σ ‖x - nearest unit centre‖², which spherical k-means
minimises; scikit-learn's centres are scaled to unit length for it, as prototypes are.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from benchmarks.record import Figure, alternating, record
from benchmarks.workload import PRESENT
from fewtags.losses.contrastive import unit
from fewtags.transfer.clustering import category_prototypes

LOOKS = 12
"""Kinds of appearance that a fabricated category has."""
SPREAD = 1.0
RIVAL = "scikit-learn's KMeans, looped"


def fabricated(images: int, categories: int, size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Unit features (M, D) of known present entries and their categories (M,): a few are common, most are rare."""
    shares = 1 / np.arange(1, categories + 1)
    counts = np.maximum(1, PRESENT * images * categories * shares / shares.sum()).astype(int).clip(max=images)
    category = torch.from_numpy(np.repeat(np.arange(categories), counts))
    draw = torch.Generator().manual_seed(seed)
    looks = torch.randn(categories, LOOKS, size, generator=draw)
    chosen = torch.randint(LOOKS, (len(category),), generator=draw)
    features = looks[category, chosen] + SPREAD * torch.randn(len(category), size, generator=draw)
    return unit(features), category


def ours(features: Tensor, category: Tensor, categories: int, count: int) -> Tensor:
    return category_prototypes(features, category, categories, count)[0]


def looped(features: Tensor, category: Tensor, categories: int, count: int) -> Tensor:
    """(C, K, D) unit centres, zero where a category has fewer features than K."""
    centres = torch.zeros(categories, count, features.shape[1])
    for index in range(categories):
        points = features[category == index].numpy()
        clusters = min(count, len(points))
        if clusters:
            found = KMeans(clusters, n_init="auto", random_state=0).fit(points).cluster_centers_
            centres[index, :clusters] = unit(torch.from_numpy(found))
    return centres


def inertia(features: Tensor, category: Tensor, centres: Tensor) -> float:
    """Σ ‖x - nearest centre of its category‖²; empty slots are far from everything."""
    total = 0.0
    for index, own in enumerate(centres):
        filled = own[own.square().sum(1) > 0]
        points = features[category == index]
        if len(points):
            total += float((2 - 2 * (points @ filled.T).amax(1)).double().sum())
    return total


def figures(images: int, categories: int, size: int, count: int, rounds: int) -> list[Figure]:
    features, category = fabricated(images, categories, size)
    given = (features, category, categories, count)
    seconds, centres = alternating({"ours": lambda: ours(*given), RIVAL: lambda: looped(*given)}, rounds)
    loss = {name: inertia(features, category, found) for name, found in centres.items()}
    what = f"{images:,} images × {categories} categories, {len(features):,} features of size {size}, K = {count}"
    return [
        Figure("prototypes", f"k-means, {what}", seconds["ours"], seconds[RIVAL], RIVAL, "s", 0.2, of_ratio=True),
        Figure("prototypes", "inertia", loss["ours"], loss[RIVAL], RIVAL, "", 1.0, of_ratio=True),
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prototypes", description=__doc__.split("\n")[0])
    for name, value in (("images", 10_000), ("categories", 80), ("size", 1024), ("count", 10), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    record(figures(**vars(parser.parse_args(arguments))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
