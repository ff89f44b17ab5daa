"""What is measured: hst's heads with the paper's sizes, on fabricated maps and labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.losses.contrastive import unit
from fewtags.methods.base import Method, Moment, Setting
from fewtags.methods.hst import Hst
from fewtags.recipe import Recipe
from fewtags.training.data import Collate, KnownLabels

PRESENT = 0.036
"""COCO's share of present labels: 2.9 of 80."""
KNOWN = 0.5
"""The middle of the paper's 10 % to 90 %. fewtags computes less where less is known, the textbook does not."""
COUNTED_IMAGES = 500
LATE = Moment(epoch=99, progress=99.0)
"""After warm-up, so that pseudo labels are made."""

SIZES: dict[str, object] = {
    "feature_size": 1024,
    "joint_size": 512,
    "word_size": 300,
    "classifier_size": 1024,
    "pair_size": 512,
    "pair_hidden": 1024,
    "prototypes": 10,
}
CHANNELS = 2048
TINY: dict[str, object] = {
    "feature_size": 16,
    "joint_size": 8,
    "word_size": 5,
    "classifier_size": 14,
    "pair_size": 7,
    "pair_hidden": 9,
    "prototypes": 3,
}
"""Sizes for a smoke test."""
AS_PRINTED: dict[str, object] = {
    "dropout": 0.0,
    "shortcut": False,
    "pool_map": False,
    "pair_prior": False,
    "own_share": 0.0,
    "plain_beside": False,
    "contrast_queue": 0,
    "threshold_labels": "all",
}
"""Without what fewtags adds to the paper: the textbook must be able to say the same."""


def make_labels(images: int, categories: int, known: float = KNOWN, seed: int = 0) -> np.ndarray:
    """(images, categories) of -1, 0, +1; each image holds equally many categories, two at least."""
    rng = np.random.default_rng(seed)
    rank = rng.random((images, categories)).argsort(1).argsort(1)
    values = np.where(rank < max(2, round(PRESENT * categories)), 1, -1)
    return np.where(rng.random(values.shape) < known, values, 0).astype(np.int8)


def make_method(categories: int, channels: int = CHANNELS, seed: int = 0, **settings: object) -> Hst:
    """The default hst at the paper's sizes, as after some training: with prototypes, thresholds amid evidence."""
    recipe = Recipe().replace(**({"graph_smoothing": 20.0} | SIZES | settings))
    labels = torch.from_numpy(make_labels(COUNTED_IMAGES, categories, seed=seed)).float()
    names = tuple(f"category {index}" for index in range(categories))
    torch.manual_seed(seed)
    method = Hst(Setting(recipe, names, channels, labels))
    for part, middle in ((method.intra, 0.5), (method.cross, 0.0)):
        part.threshold.theta.data.fill_(middle)
        part.threshold.started.fill_(True)
    for reference in method.cross.references:
        reference.vectors.copy_(unit(torch.randn_like(reference.vectors)))
        reference.counts.fill_(reference.vectors.shape[1])
    return method.train()


def make_batch(
    images: int,
    categories: int,
    side: int,
    channels: int = CHANNELS,
    known: float = KNOWN,
    seed: int = 1,
    crossfit: bool = False,
) -> Batch:
    """Maps (images, channels, side, side) and what is known of them."""
    labels = make_labels(images, categories, known, seed)
    folds = np.random.default_rng(seed).integers(0, 2, labels.shape, dtype=np.int8) if crossfit else None
    maps = torch.relu(noise(images, channels, side, side, seed=seed))
    return Collate(KnownLabels(labels, folds=folds), seed)(([(row, 0) for row in range(images)], maps))


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def total(method: Method, batch: Batch, outputs: dict[str, Tensor] | None = None) -> Tensor:
    """The loss of one training step; `outputs`: if the method has been run already."""
    outputs = method(batch.inputs) if outputs is None else outputs
    return weighted(method.losses(outputs, batch, LATE).terms, method)


def weighted(terms: dict[str, Tensor], method: Method) -> Tensor:
    weights = method.loss_weights(LATE)
    return torch.stack([weights.get(name, 1.0) * term for name, term in terms.items()]).sum()
