"""A linear layer that learns from known labels alone, before anything is filled in.

With a frozen backbone its pooled maps never change, so the layer can be trained on them in seconds, and then says
which unknown entries are the surest. What it says does not depend on any label that is filled later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from fewtags.batch import Batch
from fewtags.losses.partial_bce import partial_bce
from fewtags.nn.classifier import PooledClassifier
from fewtags.processes.together import all_rows
from fewtags.recipe import Recipe

EPOCHS = 8
"""However long the network trains: more than these, and the layer overfits few labels."""
MOST_IMAGES = 50_000
"""More would not make a linear layer better, and their pooled maps are held in memory."""


class Pooled(NamedTuple):
    """n training images."""

    maps: Tensor
    """(n, channels)"""
    labels: Tensor
    """(n, C) int8 of -1, 0, +1."""
    targets: Tensor
    """(n, C) int8: `labels`, and -1 where an unknown entry is a weak absent."""
    weights: Tensor | None
    """(n, C) of the targets; None: all 1."""
    described: Tensor | None = None
    """(n, F): what else is wanted of the maps."""


Describe = Callable[[Tensor], Tensor]
"""Maps (B, channels, H, W) → (B, F)"""


@torch.no_grad()
def pooled(batches: Iterable[Batch], images: int, describe: Describe | None = None) -> Pooled:
    """Of all `images`, whose inputs are maps; of every k-th where there are too many."""
    every = -(-images // MOST_IMAGES)
    maps, labels, targets, weights, described = [], [], [], [], []
    for batch in batches:
        chosen = batch.image_index % every == 0
        inputs = batch.inputs[chosen].float()
        maps.append(inputs.mean((2, 3)))
        labels.append(batch.labels[chosen].to(torch.int8))
        targets.append(batch.targets[chosen].to(torch.int8))
        weights += [] if batch.weights is None else [batch.weights[chosen]]
        described += [] if describe is None else [describe(inputs)]
    first = [all_rows(torch.cat(parts)) for parts in (maps, labels, targets)]
    rest = [all_rows(torch.cat(parts)) if parts else None for parts in (weights, described)]
    return Pooled(first[0], first[1], first[2], rest[0], rest[1])


def learn(layer: PooledClassifier, images: Pooled, recipe: Recipe) -> None:
    """AdamW, and a learning rate that falls to 0 along a cosine."""
    if layer.centred:
        layer.mean.copy_(images.maps.mean(0))
    x, draw = images.maps - layer.mean, torch.Generator().manual_seed(recipe.seed)
    weight, bias = (part.detach().clone().requires_grad_() for part in (layer.weight, layer.bias))
    groups: list[dict[str, Any]] = [{"params": [weight]}, {"params": [bias], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=recipe.shortcut_lr, weight_decay=recipe.weight_decay)
    steps = EPOCHS * -(-len(x) // recipe.batch_size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x), generator=draw).to(x.device).split(recipe.batch_size):
            weights = None if images.weights is None else images.weights[rows]
            logits = functional.linear(x[rows], weight, bias)
            loss = partial_bce(logits, images.targets[rows].float(), recipe.known_normalization, weights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
