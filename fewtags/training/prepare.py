"""From a recipe and data to what training may know. Hidden and test labels part from the rest here, for good."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.utils.data import Dataset

from fewtags.data import Data, check_absents
from fewtags.errors import UserError
from fewtags.images.cache import cache_folder, cached_features
from fewtags.images.loading import ImageSource
from fewtags.images.transforms import evaluation_transform, training_transform
from fewtags.labels.hide import held_out, hide
from fewtags.labels.sparse import SparseTable
from fewtags.labels.table import LabelTable
from fewtags.nn.backbones import Backbone, build_backbone
from fewtags.nn.cut import FrozenStages, cut
from fewtags.recipe import Recipe
from fewtags.training.data import CachedMaps, KnownLabels, ViewedImages
from fewtags.training.prepare_sparse import dense_table, known_of_sparse

SHARED_SEED = 0
"""Draws which images `limit` keeps and the crops in the cache: the same for all runs, which thus share it."""


@dataclass(frozen=True)
class Prepared:
    recipe: Recipe
    train: LabelTable
    """Its values are what training may know."""
    known: KnownLabels
    hidden: np.ndarray | None
    """Training labels that training does not know, for the audit alone. None: the truth is not complete."""
    test: LabelTable


@dataclass(frozen=True)
class Inputs:
    """What the network reads: cached maps, or images when the backbone is trained on new crops of them."""

    backbone: Backbone
    train: Dataset[Tensor]
    test: Dataset[Tensor]
    trained: nn.Module | None
    """What is trained of the backbone, and reads them; None: nothing."""
    workers: int


def prepare_labels(data: Data, recipe: Recipe) -> Prepared:
    """Split, set aside, limit, hide and hold out."""
    given = limited(data.table.split("train"), recipe.limit, recipe.development)
    test = dense_table(scored_table(data.table, recipe).without_completed())
    if not len(given):
        raise UserError(f"{data.name}: there are no training images; mark some rows with split `train`")
    if isinstance(given, SparseTable):
        return Prepared(recipe, *known_of_sparse(given, recipe), None, test)
    visible = hide(given.values, recipe.known, recipe.seed)
    kept_out = held_out(visible, recipe.holdout, recipe.seed)
    labels = np.where(kept_out, 0, visible).astype(np.int8)
    if (visible == 1).any() and not (labels == 1).any():
        raise UserError(f"holdout={recipe.holdout}: every label that is known to be present is kept out; lower it")
    train = given.with_values(labels)
    check_absents(train, recipe)
    known = KnownLabels(
        labels=labels,
        held_out=np.where(kept_out, visible, 0).astype(np.int8) if recipe.holdout else None,
        folds=random_folds(labels.shape, recipe.seed) if recipe.threshold_labels == "crossfit" else None,
        assume_absent=recipe.assume_absent,
        sample_absent=recipe.sample_absent,
        sample_absent_weight=recipe.sample_absent_weight,
    )
    hidden = np.where(labels == 0, given.values, 0) if given.known.all() else None
    return Prepared(recipe, train, known, hidden, test)


def limited(table: LabelTable, limit: int | None, development: int = 0) -> LabelTable:
    """The training rows to train on: not those set aside, and at most `limit`, in the table's order.

    One fixed draw decides: which rows a limit keeps does not depend on whether any are set aside.
    """
    if not development and (limit is None or limit >= len(table)):
        return table
    kept = _drawn(table)[: len(table) - development]
    if not len(kept) and len(table):
        raise UserError(f"development={development}: of {len(table)} training images none is left to train on")
    return table.rows(np.sort(kept[:limit]))


def scored_table(table: LabelTable, recipe: Recipe) -> LabelTable:
    """The rows that a run is scored on: the test split, or the training rows set aside."""
    if recipe.score == "test":
        return table.split("test")
    if not recipe.development:
        raise UserError("score=development: no images are set aside; set development to a number of them")
    train = table.split("train")
    return train.rows(np.sort(_drawn(train)[len(train) - recipe.development :]))


def _drawn(table: LabelTable) -> np.ndarray:
    return np.random.default_rng(SHARED_SEED).permutation(len(table))


def random_folds(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """(images, categories) of 0, 1: the fold of each entry, for cross-fitting."""
    return np.random.default_rng([seed, 29]).integers(0, 2, shape, dtype=np.int8)


def prepare_inputs(
    data: Data, prepared: Prepared, backbone: Backbone, device: torch.device, pooled: bool, console: Console
) -> Inputs:
    recipe = prepared.recipe
    cached, trained = parts(backbone, recipe)
    if cached is not None:
        common = (cached, recipe)
        rest = (device, console)
        pooled = pooled and trained is None
        train = backbone_maps(data.images, prepared.train.images, *common, recipe.views, *rest)
        test = backbone_maps(data.images, prepared.test.images, *common, ("plain",), *rest)
        sets = CachedMaps(train, pooled, prepared.train.images), CachedMaps(test, pooled, prepared.test.images)
        return Inputs(backbone, *sets, trained, workers=0)
    plain = evaluation_transform(recipe.image_size, backbone.mean, backbone.std)
    augmented = training_transform(
        recipe.image_size, recipe.resize, recipe.crop_sides, backbone.mean, backbone.std
    )
    train_set, test_set = (
        ViewedImages(table.images, data.images, plain, augmented) for table in (prepared.train, prepared.test)
    )
    return Inputs(backbone, train_set, test_set, trained, workers=worker_count(recipe))


def parts(backbone: Backbone, recipe: Recipe) -> tuple[Backbone | FrozenStages | None, nn.Module | None]:
    """What is cached of the backbone, and what is trained: (all, nothing), (nothing, all), or its stages apart."""
    if recipe.freeze_backbone:
        return backbone, None
    if not recipe.cache_frozen_stages:
        backbone.train_last(recipe.trained_stages)
        return None, backbone
    frozen, trained = cut(backbone, recipe.trained_stages, recipe.image_size)
    backbone.train_last(recipe.trained_stages)
    return frozen, trained


def backbone_maps(
    source: ImageSource,
    images: Sequence[str],
    backbone: Backbone | FrozenStages,
    recipe: Recipe,
    views: tuple[str, ...],
    device: torch.device,
    console: Console,
) -> np.ndarray:
    """(images, views, channels, H, W): from the cache, or computed and cached."""
    return cached_features(
        images,
        source,
        backbone,
        size=recipe.image_size,
        views=views,
        seed=SHARED_SEED,
        folder=cache_folder(),
        device=device,
        resize=recipe.resize,
        crop_sides=recipe.crop_sides,
        console=console,
    )


def resolved(recipe: Recipe, device: torch.device, settings: dict[str, object]) -> Recipe:
    """The recipe with what depends on the machine and on the method's definition filled in."""
    frozen = device.type == "cpu" if recipe.freeze_backbone is None else recipe.freeze_backbone
    views = recipe.views if "plain" in recipe.views[:1] else ("plain", *recipe.views)
    return recipe.replace(freeze_backbone=frozen, views=views, **settings)


def make_backbone(recipe: Recipe) -> Backbone:
    torch.manual_seed(SHARED_SEED)  # for a backbone that starts from random weights
    return build_backbone(recipe.backbone, recipe.pretrained, recipe.backbone_weights)


def choose_device(wanted: str) -> torch.device:
    if wanted != "auto":
        return torch.device(wanted)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def worker_count(recipe: Recipe) -> int:
    return min(os.cpu_count() or 1, 8) if recipe.workers is None else recipe.workers
