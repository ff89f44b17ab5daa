"""What the best place of an image, and a discriminant of mean images, bring a linear layer.

    python -m benchmarks.place_trials data/coco-sample --seeds 0 1

As `benchmarks.linear_trials`, but on whole maps, so a run takes half a minute. A share of each score is that of
the image's best place, in training and after; own labels are chosen once, by a layer that was trained before on
the known labels and pooled maps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from benchmarks import linear_trials
from benchmarks.linear_trials import BATCH, Images, bce, surer_than, surest
from fewtags.labels.base_rates import base_rates
from fewtags.nn.classifier import PooledClassifier
from fewtags.recipe import Recipe
from fewtags.transfer.discriminant import set_discriminant

PEAKS, SHARES = (0.0, 0.2), (0.2, 0.3)
Scores = Callable[[Tensor], Tensor]


def one_seed(data: str, recipe: Recipe) -> dict[str, float]:
    """What was tried → mAP on the scored images, in percent."""
    maps, images, known = linear_trials.opened_maps(data, recipe)
    pooled, rates = images.train[:, 0], torch.logit(base_rates(known))
    before = linear_trials.train(images.centred(), known, rates).scores(pooled - pooled.mean(0))[0]
    nothing = torch.zeros_like(known, dtype=torch.bool)
    found = {}
    for peak in PEAKS:
        layer = trained(maps.train, images, known, rates, peak, nothing)
        found[f"peak {peak}"] = mean_ap(maps.scored, images, layer)
    found["peak 0.2, own >= 0.7"] = mean_ap(
        maps.scored, images, trained(maps.train, images, known, rates, 0.2, nothing, confidence=0.7)
    )
    for share in SHARES:
        filled = surest(known, share)(before) & (known == 0)
        layer = trained(maps.train, images, known, rates, 0.2, filled)
        found[f"peak 0.2, surest {share} by a layer trained before"] = mean_ap(maps.scored, images, layer)
        beside = PooledClassifier(pooled.shape[1], rates, centred=True).eval()
        set_discriminant(beside, pooled, (known == 1) | filled, before)
        found[f"... {share}, the discriminant alone"] = mean_ap(maps.scored, images, beside)
        for mixed in (0.3, 0.5):
            found[f"... {share}, a discriminant's share of {mixed}"] = mean_ap(
                maps.scored, images, mixture(layer, beside, mixed)
            )
    return found


def mixture(layer: Scores, beside: Scores, share: float) -> Scores:
    return lambda maps: torch.lerp(layer(maps), beside(maps), share)


def trained(
    maps: np.ndarray,
    images: Images,
    known: Tensor,
    bias: Tensor,
    peak: float,
    filled: Tensor,
    confidence: float | None = None,
) -> PooledClassifier:
    """`confidence`: after warm-up, what the running scores are so sure of is filled in too."""
    layer = PooledClassifier(images.train.shape[2], bias, centred=True, peak=peak).eval()
    layer.mean.copy_(images.train[:, 0].mean(0))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-3, weight_decay=5e-4)
    steps = linear_trials.EPOCHS * -(-len(known) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    draw = torch.Generator().manual_seed(0)
    for epoch in range(linear_trials.EPOCHS):
        for rows in torch.randperm(len(known), generator=draw).split(BATCH):
            view = torch.randint(maps.shape[1], (len(rows),), generator=draw)
            scores, own = layer(read(maps[rows.numpy(), view.numpy()])), filled[rows]
            if confidence is not None and epoch >= linear_trials.WARM_UP:
                own = surer_than(confidence)(scores.detach()) & (known[rows] == 0)
            used, both = known[rows] != 0, torch.where(own, 1.0, known[rows])
            loss = bce(scores[None], known[rows], used[None]) + bce(scores[None], both, (used | own)[None])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return layer.requires_grad_(False)


def read(maps: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(maps, dtype=np.float32))


def mean_ap(maps: np.ndarray, images: Images, scores: Scores) -> float:
    with torch.no_grad():
        given = [scores(read(maps[start : start + BATCH, 0])) for start in range(0, len(maps), BATCH)]
    return linear_trials.percent(images, torch.cat(given))


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(linear_trials.main(sys.argv[1:], one_seed))
