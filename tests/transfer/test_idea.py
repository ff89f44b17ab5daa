"""The idea of intra-image transfer, on the labels of `scenes`: known labels tell unknown ones if they correlate.

No picture is drawn: the features are noise, so all that the evidence can know is co-occurrence.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fewtags.images.scenes import scenes
from fewtags.labels.hide import hide
from fewtags.metrics import average_precision
from fewtags.nn.label_graph import conditional_graph, count_pairs, shares_without_itself
from fewtags.recipe import Recipe
from fewtags.training.data import Collate, KnownLabels
from fewtags.transfer.intra import intra_evidence
from fewtags.transfer.intra_transfer import IntraTransfer
from fewtags.transfer.thresholds import LearnedThreshold

IMAGES, FEATURE_SIZE = 2000, 8


def share_right(evidence: torch.Tensor, available: np.ndarray, labels: np.ndarray, truth: np.ndarray) -> float:
    """θ is fitted to the known labels; of the unknown entries that pass it, the share that is present."""
    threshold = LearnedThreshold(labels.shape[1])
    taught = torch.from_numpy(available & (labels != 0))
    threshold.fit(evidence[taught], torch.from_numpy(labels)[taught])
    passed = available & (labels == 0) & (evidence.numpy() >= float(threshold.theta.detach()))
    assert passed.sum() > 50
    return float((truth[passed] == 1).mean())


def shares_right(seed: int) -> tuple[float, float]:
    """The share right with an image's own label left out of the counts, and with it counted."""
    table, _ = scenes(train=IMAGES, test=0, seed=seed)
    labels = hide(table.values, 0.1, seed)
    images, given = (torch.from_numpy(index) for index in np.nonzero(labels == 1))
    known = torch.from_numpy(labels)
    left_out = shares_without_itself(count_pairs(labels), given, known[images])
    found = [
        intra_evidence(shares, images, given, known) for shares in (left_out, conditional_graph(labels)[given])
    ]
    ours, naive = (share_right(e, a.numpy(), labels, table.values) for e, a in found)
    return ours, naive


def test_threshold_fits_unknown_labels_only_if_own_labels_are_left_out():
    """Where P(present | evidence = θ) = ½, more than half of what passes is right: in the mean over five masks."""
    right = np.array([shares_right(seed) for seed in range(5)])  # (5, 2)
    assert (right[:, 0] > right[:, 1]).all()
    assert right[:, 0].mean() > 0.5
    assert right[:, 1].mean() < 0.45


def gain(correlation: float, seed: int) -> float:
    """Average precision of the evidence on hidden labels above that of shuffled evidence; mean over categories."""
    table, _ = scenes(train=IMAGES, test=0, seed=seed, correlation=correlation)
    labels = hide(table.values, 0.1, seed)
    adjacency = conditional_graph(labels, "smoothed")
    torch.manual_seed(seed)
    recipe = Recipe(feature_size=FEATURE_SIZE, pair_size=8, pair_hidden=8, threshold_labels="all")
    intra = IntraTransfer(recipe, torch.from_numpy(labels)).eval()
    batch = Collate(KnownLabels(labels), seed)(([(row, 0) for row in range(IMAGES)], torch.zeros(IMAGES, 1)))
    noise = torch.randn(IMAGES, labels.shape[1], FEATURE_SIZE)
    with torch.no_grad():
        evidence, _, available = intra.evidence(noise, batch, adjacency)
    judged = np.where((labels == 0) & available.numpy(), table.values, 0)
    shuffled = np.random.default_rng(seed).permuted(evidence.numpy(), axis=0)
    chance = average_precision(shuffled, judged)
    return float(np.nanmean(average_precision(evidence.numpy(), judged) - chance))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_evidence_is_worth_much_with_themes_and_nothing_without(seed: int):
    with_themes, without = gain(1.0, seed), gain(0.0, seed)
    assert with_themes > 0.08
    assert abs(without) < 0.02
