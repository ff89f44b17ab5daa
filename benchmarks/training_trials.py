"""What ways of training that any method could share bring a linear layer: averages, noise, mixtures, epochs.

    python -m benchmarks.training_trials data/coco-sample --seeds 0 1 2

As `benchmarks.linear_trials`, from base rates and centred, known labels alone; each row changes one thing.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks import command, linear_trials
from benchmarks.linear_trials import BATCH, Images, Layer, bce, mean_ap
from fewtags.labels.base_rates import base_rates
from fewtags.recipe import Recipe


@dataclass(frozen=True)
class Way:
    """A way of training."""

    dropout: float = 0.0
    """Share of the features that are set to their mean in a step."""
    noise: float = 0.0
    """Added to each feature, in standard deviations of it."""
    blend_views: bool = False
    """A random mixture of two views of an image in place of one of them."""
    mixup: float = 0.0
    """α: images in random pairs, mixed by Beta(α, α), each with the known labels of both."""
    average: float = 0.0
    """How much of the weights' running average stays in a step; the average is the result. 0: the last weights."""
    epochs: float = 1.0
    """Times the epochs."""


WAYS = {
    "as it is": Way(),
    "a running average of the weights (0.99)": Way(average=0.99),
    "a running average of the weights (0.998)": Way(average=0.998),
    "dropout of 0.1 of the features": Way(dropout=0.1),
    "dropout of 0.3": Way(dropout=0.3),
    "dropout of 0.5": Way(dropout=0.5),
    "noise of 0.3 of a feature's spread": Way(noise=0.3),
    "noise of 1": Way(noise=1.0),
    "mixtures of an image's views": Way(blend_views=True),
    "mixtures of two images (0.2)": Way(mixup=0.2),
    "mixtures of two images (1)": Way(mixup=1.0),
    "half the epochs": Way(epochs=0.5),
    "twice the epochs": Way(epochs=2.0),
    "dropout of 0.5, twice the epochs": Way(dropout=0.5, epochs=2.0),
}


def one_seed(data: str, recipe: Recipe) -> dict[str, float]:
    """What was tried → mAP on the scored images, in percent."""
    images, known = linear_trials.opened(data, recipe)
    images, rates = images.centred(), torch.logit(base_rates(known))
    return {name: mean_ap(images, trained(images, known, rates, way)) for name, way in WAYS.items()}


def trained(images: Images, known: Tensor, bias: Tensor, way: Way) -> Layer:
    layer = Layer(torch.zeros(1, images.train.shape[2], known.shape[1]), bias.clone().view(1, 1, -1))
    parameters = [layer.weight.requires_grad_(), layer.bias.requires_grad_()]
    averages = [parameter.detach().clone() for parameter in parameters]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=5e-4)
    epochs = max(1, round(way.epochs * linear_trials.EPOCHS))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * -(-len(known) // BATCH))
    spread, draw = images.train[:, 0].std(0), torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for rows in torch.randperm(len(known), generator=draw).split(BATCH):
            loss = step_loss(layer, images.train[rows], known[rows], spread, way, draw)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            for average, parameter in zip(averages, parameters, strict=True):
                average.lerp_(parameter.detach(), 1 - way.average)
    return Layer(*averages)


def step_loss(
    layer: Layer, views: Tensor, labels: Tensor, spread: Tensor, way: Way, draw: torch.Generator
) -> Tensor:
    """Features of all views (B, V, D) and labels (B, C) → the loss of one step."""
    features = altered(views, spread, way, draw)
    if not way.mixup:
        return bce(layer.scores(features), labels, (labels != 0)[None])
    partner = torch.randperm(len(labels), generator=draw)
    share = beta(way.mixup, draw)
    scores = layer.scores(torch.lerp(features[partner], features, share))
    mine, others = (bce(scores, of, (of != 0)[None]) for of in (labels, labels[partner]))
    return share * mine + (1 - share) * others


def altered(views: Tensor, spread: Tensor, way: Way, draw: torch.Generator) -> Tensor:
    """(B, V, D) → (B, D): one view of each image, or a mixture of two, altered as the way says."""
    image = torch.arange(len(views))
    first, second = (torch.randint(views.shape[1], (len(views),), generator=draw) for _ in range(2))
    features = views[image, first]
    if way.blend_views:
        features = torch.lerp(features, views[image, second], torch.rand(len(views), 1, generator=draw))
    if way.noise:
        features = features + way.noise * spread * torch.randn(features.shape, generator=draw)
    if way.dropout:
        kept = torch.rand(features.shape, generator=draw) >= way.dropout
        features = features * kept / (1 - way.dropout)
    return features


def beta(alpha: float, draw: torch.Generator) -> float:
    """A draw of Beta(α, α), by Jöhnk's method."""
    while True:
        one, other = (torch.rand(2, generator=draw, dtype=torch.float64) ** (1 / alpha)).tolist()
        if 0 < one + other <= 1:
            return one / (one + other)


if __name__ == "__main__":
    torch.set_num_threads(1)
    command.run(lambda: linear_trials.main(sys.argv[1:], one_seed))
