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
from fewtags.nn.label_graph import conditional_graph
from fewtags.recipe import Recipe
from fewtags.training.data import Collate, KnownLabels
from fewtags.transfer.intra_transfer import IntraTransfer

IMAGES, FEATURE_SIZE = 2000, 8


def gain(correlation: float, seed: int) -> float:
    """Average precision of the evidence on hidden labels above that of shuffled evidence; mean over categories."""
    table, _ = scenes(train=IMAGES, test=0, seed=seed, correlation=correlation)
    labels = hide(table.values, 0.1, seed)
    adjacency = conditional_graph(labels, "smoothed")
    torch.manual_seed(seed)
    recipe = Recipe(feature_size=FEATURE_SIZE, pair_size=8, pair_hidden=8)
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
