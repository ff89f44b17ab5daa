"""What the best place of an image, and discriminants of mean images, bring a linear layer.

    python -m benchmarks.place_trials data/coco-sample --seeds 0 1

As `benchmarks.linear_trials`, but on whole maps, so a run takes half a minute. A share of each score is that of
the image's best place, in training and after; own labels are chosen once, by what was trained before on the known
labels and pooled maps: a layer alone, or with a discriminant.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from benchmarks import command, linear_trials
from benchmarks.linear_trials import BATCH, Images, bce, own_predictions, ranked, surer_than, surest
from fewtags.labels.base_rates import base_rates
from fewtags.nn.backbone_classes import BackboneClasses
from fewtags.nn.classifier import PooledClassifier
from fewtags.recipe import Recipe
from fewtags.training.prepare import make_backbone
from fewtags.transfer.discriminant import Description, Discriminant, described_by

PEAK, SHARE = 0.2, 0.6
Scores = Callable[[Tensor], Tensor]


def one_seed(data: str, recipe: Recipe) -> dict[str, float]:
    """What was tried → mAP on the scored images, in percent."""
    maps, images, known = linear_trials.opened_maps(data, recipe)
    pooled, rates = images.train[:, 0], torch.logit(base_rates(known))
    before = linear_trials.train(images.centred(), known, rates).scores(pooled - pooled.mean(0))[0]
    nothing = torch.zeros_like(known, dtype=torch.bool)

    def scored(scores: Scores) -> float:
        return mean_ap(maps.scored, images, scores)

    def layer_of(filled: Tensor, **settings: float) -> Scores:
        return trained(maps.train, images, known, rates, filled, **{"peak": PEAK, **settings})

    found = {"mean over all places": scored(layer_of(nothing, peak=0.0))}
    from_known = layer_of(nothing)
    found[f"{PEAK} from the best place"] = scored(from_known)
    found["... own >= 0.7"] = scored(layer_of(nothing, confidence=0.7))
    found["... the surest 0.2 by a layer trained before"] = scored(layer_of(chosen(before, known)))
    all_known = trained(maps.train, images, images.labels, rates, nothing, PEAK)
    found["all labels known"] = scored(all_known)
    rivals, recall = own_predictions(images.centred(), known, rates)
    found |= rivals
    for name, classes in (("pooled map", None), ("pooled map and classes", make_backbone(recipe).classes)):
        described = Described(maps.train, known, classes)
        teacher, of_training = described.discriminant(known == 1, before)
        found |= ranked(f"{name}: discriminant of known labels", of_training.numpy(), images, known, recall)
        found[f"{name}: discriminant of known labels"] = scored(teacher)
        found[f"{name}: {SHARE} of the score from it, nothing filled"] = scored(mixture(from_known, teacher))
        filled = chosen(torch.lerp(before, of_training, SHARE), known)
        layer, (beside, _) = layer_of(filled), described.discriminant((known == 1) | filled, before)
        found[f"{name}: the surest 0.2 by both, right"] = 100 * float((images.labels[filled] == 1).float().mean())
        found[f"{name}: the surest 0.2 by both"] = scored(layer)
        found[f"{name}: the discriminant of these alone"] = scored(beside)
        found[f"{name}: {SHARE} of the score from it"] = scored(mixture(layer, beside))
        beside, _ = Described(maps.train, images.labels, classes).discriminant(images.labels == 1, before)
        found[f"{name}: all labels known, {SHARE} from it"] = scored(mixture(all_known, beside))
    return found


def chosen(scores: Tensor, known: Tensor) -> Tensor:
    return surest(known, 0.2)(scores) & (known == 0)


class Described:
    """What discriminants read of the training images, plain view, and how it varies."""

    def __init__(self, maps: np.ndarray, labels: Tensor, classes: BackboneClasses | None):
        self.description = Description(maps.shape[2], classes)
        starts = range(0, len(maps), BATCH)
        roots = torch.cat([self.description.roots(read(maps[start : start + BATCH, 0])) for start in starts])
        self.images = described_by(self.description, roots, labels)

    def discriminant(self, present: Tensor, scores: Tensor) -> tuple[Scores, Tensor]:
        """From maps to scores; and the scores of the training images."""
        made = Discriminant(present.shape[1], self.description.size)
        made.learn(self.images.spread, self.images.ridge, present, scores)
        return lambda maps: made(self.description(maps)), made(self.images.described)


def mixture(layer: Scores, beside: Scores) -> Scores:
    return lambda maps: torch.lerp(layer(maps), beside(maps), SHARE)


def trained(
    maps: np.ndarray,
    images: Images,
    known: Tensor,
    bias: Tensor,
    filled: Tensor,
    peak: float,
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
    command.run(lambda: linear_trials.main(sys.argv[1:], one_seed))
