"""What a linear layer on frozen features says about starts, pseudo labels and evidence, in seconds a run.

    python -m benchmarks.linear_trials data/coco-sample --seeds 0 1

Scored on the development split (docs/protocol.md), 4,000 training images, 8 epochs. Pseudo labels are chosen anew
at the beginning of each epoch after the second, from scores of the plain view; or once, before the first epoch,
by a layer that was trained before on the known labels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from torch import Tensor
from torch.nn import functional

from benchmarks import command
from fewtags.data import open_data
from fewtags.labels.base_rates import base_rates
from fewtags.recipe import Recipe
from fewtags.training.prepare import backbone_maps, make_backbone, prepare_labels

EPOCHS, BATCH, WARM_UP, FOLDS = 8, 64, 2, 5
CONFIDENCE = 0.7
Choice = Callable[[Tensor], Tensor]
"""Scores (n, C) → (n, C) bool: what to fill as present."""
Trial = Callable[[str, Recipe], dict[str, float]]
"""Data and recipe of a seed → what was tried and what came of it."""


@dataclass(frozen=True)
class Images:
    """Pooled maps of training images (n, views, D) and scored ones (m, D), and all labels: (n, C), (m, C)."""

    train: Tensor
    labels: Tensor
    scored: Tensor
    truth: Tensor

    def centred(self) -> Images:
        mean = self.train[:, 0].mean(0)
        return Images(self.train - mean, self.labels, self.scored - mean, self.truth)


@dataclass(frozen=True)
class Layer:
    weight: Tensor
    """(K, D, C): K layers side by side."""
    bias: Tensor
    """(K, 1, C)"""

    def scores(self, pooled: Tensor) -> Tensor:
        """(n, D) → (K, n, C)"""
        return pooled @ self.weight + self.bias


def main(arguments: list[str], trial: Trial | None = None) -> int:
    """Prints a table row of each thing tried, with a column for each seed."""
    trial = trial or one_seed
    module = sys.modules[trial.__module__]
    about = (module.__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog=Path(str(module.__file__)).stem, description=about)
    parser.add_argument("data")
    parser.add_argument("--known", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--limit", type=int, default=4000)
    parser.add_argument("--development", type=int, default=2000)
    options = parser.parse_args(arguments)
    recipe = Recipe(known=options.known, limit=options.limit, development=options.development, score="development")
    found = [trial(options.data, recipe.replace(seed=seed)) for seed in options.seeds]
    for name in found[0]:
        print(f"| {name} | " + " | ".join(f"{row[name]:.2f}" for row in found) + " |")
    return 0


def one_seed(data: str, recipe: Recipe) -> dict[str, float]:
    """What was tried → mAP on the scored images, or the average precision of hidden labels, in percent."""
    images, known = opened(data, recipe)
    centred, rates = images.centred(), torch.logit(base_rates(known))
    return (
        starts(images, centred, known, rates) | fillings(centred, known, rates) | rankings(centred, known, rates)
    )


def starts(images: Images, centred: Images, known: Tensor, rates: Tensor) -> dict[str, float]:
    undecided = torch.zeros_like(rates)
    return {
        "undecided, lr 3e-3": mean_ap(images, train(images, known, undecided, lr=3e-3)),
        "undecided, lr 3e-3, own >= 0.7": mean_ap(
            images, train(images, known, undecided, lr=3e-3, choose=surer_than(0.7))
        ),
        "undecided, centred": mean_ap(centred, train(centred, known, undecided)),
        "base rates, lr 3e-3": mean_ap(images, train(images, known, rates, lr=3e-3)),
        "base rates": mean_ap(images, train(images, known, rates)),
        "base rates, centred": mean_ap(centred, train(centred, known, rates)),
        "base rates, centred, all labels known": mean_ap(centred, train(centred, centred.labels, rates)),
    }


def fillings(images: Images, known: Tensor, rates: Tensor) -> dict[str, float]:
    """From base rates, centred."""
    hidden_present = (known == 0) & (images.labels == 1)
    choices: dict[str, Choice] = {f"own >= {level}": surer_than(level) for level in (0.5, 0.6, 0.7, 0.8)}
    choices |= {f"surest {share} of each category": surest(known, share) for share in (0.15, 0.3, 0.5, 0.7)}
    choices["every hidden present label"] = lambda scores: hidden_present
    found = {name: mean_ap(images, train(images, known, rates, choose=choice)) for name, choice in choices.items()}
    return found | taught_before(images, known, rates)


def taught_before(images: Images, known: Tensor, rates: Tensor) -> dict[str, float]:
    """Labels chosen once, by a layer that has learned from the known ones."""
    before = train(images, known, rates).scores(images.train[:, 0])[0]
    found = {}
    for share in (0.1, 0.2, 0.3, 0.5):
        chosen = surest(known, share)(before)
        layer = train(images, known, rates, choose=lambda scores, chosen=chosen: chosen, warm_up=0)
        found[f"surest {share} by a layer trained before"] = mean_ap(images, layer)
    return found


def rankings(images: Images, known: Tensor, rates: Tensor) -> dict[str, float]:
    """How well hidden labels are ranked, all categories together; own scores are cross-fitted.

    Also how many are right among the surest, where these are as many present labels as a layer finds that fills
    its own predictions above 0.7 while it learns.
    """
    own = crossfitted(images, known, rates)
    together, reached = co_occurrence(known)
    alike = likeness(images.train[:, 0], known)
    prior = rates.expand_as(own)
    sets = {
        "own score": [own],
        "own score and co-occurrence": [own, prior, together, reached],
        "own score and likeness": [own, prior, alike],
        "likeness": [prior, alike],
        "all three": [own, prior, together, reached, alike],
    }
    found, recall = own_predictions(images, known, rates)
    for name, parts in sets.items():
        found |= ranked(name, combined(parts, known), images, known, recall)
    return found


def own_predictions(images: Images, known: Tensor, rates: Tensor) -> tuple[dict[str, float], float]:
    """Those above 0.7 of a layer that fills them while it learns: how many are right; and their recall."""
    truth = images.labels[known == 0] == 1
    rival = train(images, known, rates, choose=surer_than(CONFIDENCE)).scores(images.train[:, 0])[0]
    filled = surer_than(CONFIDENCE)(rival)[known == 0]
    recall = float(filled[truth].float().mean())
    right = float(truth[filled].float().mean())
    return {f"right of own predictions >= {CONFIDENCE}": 100 * right, "recall of them": 100 * recall}, recall


def ranked(name: str, scores: np.ndarray, images: Images, known: Tensor, recall: float) -> dict[str, float]:
    """Scores (n, C): the average precision of hidden labels, and how many are right at this recall."""
    hidden = (known == 0).numpy()
    truth = images.labels.numpy()[hidden] == 1
    return {
        f"hidden labels by {name}": 100 * average_precision_score(truth, scores[hidden]),
        f"right at that recall by {name}": 100 * precision_at(recall, truth, scores[hidden]),
    }


def precision_at(recall: float, truth: np.ndarray, scores: np.ndarray) -> float:
    """Truth (n,) bool, scores (n,) → how many are right among as many of the surest as `recall` needs."""
    right = np.cumsum(truth[np.argsort(-scores, kind="stable")])
    enough = int(np.searchsorted(right, np.ceil(recall * truth.sum())))
    return right[enough] / (enough + 1)


class Maps(NamedTuple):
    train: np.ndarray
    """(n, views, channels, H, W)"""
    scored: np.ndarray
    """(m, 1, channels, H, W)"""


def opened(data: str, recipe: Recipe) -> tuple[Images, Tensor]:
    """The images, and the labels (n, C) that are known."""
    return opened_maps(data, recipe)[1:]


def opened_maps(data: str, recipe: Recipe) -> tuple[Maps, Images, Tensor]:
    source = open_data(data)
    prepared = prepare_labels(source, recipe.replace(holdout=0.0))
    where = make_backbone(recipe), recipe
    rest = torch.device("cpu"), Console(stderr=True)
    maps = backbone_maps(source.images, prepared.train.images, *where, recipe.views, *rest)
    scored = backbone_maps(source.images, prepared.test.images, *where, ("plain",), *rest)
    known = torch.from_numpy(prepared.train.values).float()
    assert prepared.hidden is not None
    labels = known + torch.from_numpy(prepared.hidden).float()
    truth = torch.from_numpy(prepared.test.values)
    return Maps(maps, scored), Images(pooled(maps), labels, pooled(scored)[:, 0], truth), known


def pooled(maps: np.ndarray) -> Tensor:
    return torch.from_numpy(np.stack([image.astype(np.float32).mean((2, 3)) for image in maps]))


def train(
    images: Images,
    known: Tensor,
    bias: Tensor,
    lr: float = 1e-3,
    choose: Choice | None = None,
    left_out: Tensor | None = None,
    warm_up: int = WARM_UP,
) -> Layer:
    """`left_out` (n, C) of 0 ... FOLDS - 1: that many layers, of which the k-th does not learn entries of k.

    Pseudo labels are chosen from epoch `warm_up` on.
    """
    layers = 1 if left_out is None else FOLDS
    weight = torch.zeros(layers, images.train.shape[2], known.shape[1], requires_grad=True)
    layer = Layer(weight, bias.repeat(layers, 1, 1).requires_grad_())
    optimizer = torch.optim.AdamW([layer.weight, layer.bias], lr=lr, weight_decay=5e-4)
    steps = EPOCHS * -(-len(known) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    draw, filled = torch.Generator().manual_seed(0), torch.zeros_like(known, dtype=torch.bool)
    for epoch in range(EPOCHS):
        if choose is not None and epoch >= warm_up:
            with torch.no_grad():
                filled = choose(layer.scores(images.train[:, 0])[0]) & (known == 0)
        for rows in torch.randperm(len(known), generator=draw).split(BATCH):
            view = torch.randint(images.train.shape[1], (len(rows),), generator=draw)
            scores = layer.scores(images.train[rows, view])
            used = (known[rows] != 0).expand_as(scores)
            if left_out is not None:
                used = used & (left_out[rows] != torch.arange(FOLDS).view(-1, 1, 1))
            both = torch.where(filled[rows], 1.0, known[rows])
            loss = bce(scores, known[rows], used) + bce(scores, both, used | filled[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return Layer(layer.weight.detach(), layer.bias.detach())


def bce(scores: Tensor, labels: Tensor, used: Tensor) -> Tensor:
    """Mean over the entries used, of each layer, summed over layers."""
    losses = functional.softplus(-labels * scores) * used
    return (losses.sum((1, 2)) / used.sum((1, 2)).clamp(min=1)).sum()


def mean_ap(images: Images, layer: Layer) -> float:
    return percent(images, layer.scores(images.scored)[0])


def percent(images: Images, scores: Tensor) -> float:
    """Scores (m, C) of the scored images → mAP in percent."""
    truth = images.truth.numpy() == 1
    there = truth.any(0)
    return 100 * float(average_precision_score(truth[:, there], scores.numpy()[:, there]))


def surer_than(confidence: float) -> Choice:
    return lambda scores: torch.sigmoid(scores) >= confidence


def surest(known: Tensor, share: float) -> Choice:
    """Of each category this share of the present labels that its base rate says are hidden."""
    counts = (share * base_rates(known) * (known == 0).sum(0)).long()

    def choose(scores: Tensor) -> Tensor:
        rank = scores.masked_fill(known != 0, -torch.inf).argsort(0, descending=True).argsort(0)
        return rank < counts

    return choose


def crossfitted(images: Images, known: Tensor, rates: Tensor) -> Tensor:
    """(n, C): a known entry's score is of the layer that did not learn it, an unknown one's the mean of all."""
    folds = torch.randint(FOLDS, known.shape, generator=torch.Generator().manual_seed(1))
    scores = train(images, known, rates, left_out=folds).scores(images.train[:, 0])
    return torch.where(known != 0, scores.gather(0, folds.unsqueeze(0)).squeeze(0), scores.mean(0))


def co_occurrence(known: Tensor, smoothing: float = 20.0) -> tuple[Tensor, Tensor]:
    """(n, C) mean over known present j ≠ i of logit P(i | j) - logit P(i), the image itself not counted; any j?"""
    present, seen, rates = (known == 1).float(), (known != 0).float(), base_rates(known)
    total, witnesses = torch.zeros_like(known), torch.zeros_like(known)
    images, given = torch.nonzero(present, as_tuple=True)
    together = (present.T @ present)[given] - present[images]
    share = (together + smoothing * rates) / ((present.T @ seen)[given] - seen[images] + smoothing)
    gain = torch.logit(share, 1e-4) - torch.logit(rates)
    other = (torch.arange(known.shape[1]) != given.unsqueeze(1)).float()
    total.index_add_(0, images, gain * other)
    witnesses.index_add_(0, images, other)
    return total / witnesses.clamp(min=1), (witnesses > 0).float()


def likeness(features: Tensor, known: Tensor, sharpness: float = 8.0) -> Tensor:
    """(n, C) logit of the share of present among known labels of other images, weighted by e^(8 cosine)."""
    scaled = functional.normalize((features - features.mean(0)) / (features.std(0) + 0.1), dim=1)
    weight = torch.exp(sharpness * scaled @ scaled.T).fill_diagonal_(0)
    prior = weight.mean() * len(known) / 20
    present, seen = weight @ (known == 1).float(), weight @ (known != 0).float()
    return torch.logit((present + prior * base_rates(known)) / (seen + prior), 1e-4)


def combined(parts: list[Tensor], known: Tensor) -> np.ndarray:
    """Scores (n, C) each → (n, C) by a logistic regression on the known entries."""
    columns = torch.stack(parts, -1).numpy()
    labels = known.numpy()
    fitted = LogisticRegression(C=1e3).fit(columns[labels != 0], labels[labels != 0] > 0)
    return fitted.decision_function(columns.reshape(-1, len(parts))).reshape(labels.shape)


if __name__ == "__main__":
    torch.set_num_threads(1)
    command.run(lambda: main(sys.argv[1:]))
