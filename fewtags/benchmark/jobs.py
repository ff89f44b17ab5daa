"""What a process of a sweep does: run a cell, make the feature cache, or measure what a method costs.

Each function takes the settings of one job and returns what the sweep is told, as plain JSON values.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import nn

from fewtags.data import open_for
from fewtags.methods.base import Setting
from fewtags.methods.variants import method_class
from fewtags.nn.backbones import Backbone
from fewtags.nn.inference import fastest
from fewtags.recipe import Recipe
from fewtags.training.data import CachedMaps, KnownLabels, train_loader, walk_loader
from fewtags.training.module import TrainingModule
from fewtags.training.prepare import choose_device, make_backbone, parts, prepare_inputs, prepare_labels
from fewtags.training.run import train
from fewtags.training.timing import STEPS_TIMED, expect

VIEWS_TIMED = 16
PRESENT_SHARE = 0.05
WORD_SIZE = 300


def cell(data: str, tokens: str | None, recipe: dict[str, Any], folder: str, resume: bool) -> None:
    """Train one run into its folder; what it prints goes to the folder's log."""
    console = Console(width=115, force_terminal=False, color_system=None)
    train(data, Recipe.model_validate(recipe), Path(folder), tokens=tokens, resume=resume, console=console)


def prepare(data: str, tokens: str | None, recipe: dict[str, Any], threads: int) -> None:
    """Put the features of all images into the cache, with every core, so that no cell has to."""
    chosen = Recipe.model_validate(recipe)
    torch.set_num_threads(threads)
    device = choose_device(chosen.device)
    opened = open_for(chosen, data, tokens)
    backbone = make_backbone(chosen).to(device)
    prepare_inputs(opened, prepare_labels(opened, chosen), backbone, device, False, Console(stderr=True))


def measure_step(recipe: dict[str, Any], categories: int) -> float:
    """Seconds that a training step takes per image, on random inputs and labels of the recipe's shape."""
    chosen = Recipe.model_validate(recipe)
    device = choose_device(chosen.device)
    backbone = make_backbone(chosen)
    module, loader = _trial(chosen, backbone, categories)
    return expect(module, loader, 1, device).seconds_per_epoch / chosen.batch_size


def _trial(recipe: Recipe, backbone: Backbone, categories: int) -> tuple[TrainingModule, Any]:
    rows = (STEPS_TIMED + 1) * recipe.batch_size
    known = _random_labels(rows, categories, recipe.known)
    cached, trained = parts(backbone, recipe)
    inputs = _random_inputs(recipe, cached, rows)
    cls = method_class(recipe.method)
    words = None if recipe.words is None else torch.randn(categories, WORD_SIZE)
    labels = torch.from_numpy(known.labels).float()
    names = tuple(f"category {index}" for index in range(categories))
    method = cls(Setting(recipe, names, backbone.channels, labels, words, backbone.classes))
    dataset = CachedMaps(inputs, pooled=not cls.uses_map and trained is None)
    walk = walk_loader(dataset, known, recipe.batch_size, 0)
    module = TrainingModule(method, recipe, walk, trained)
    return module, train_loader(dataset, known, recipe.batch_size, recipe.seed, 0)


def _random_labels(rows: int, categories: int, known: float) -> KnownLabels:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((rows, categories)) < PRESENT_SHARE, 1, -1)
    labels = np.where(rng.random(labels.shape) < known, labels, 0).astype(np.int8)
    return KnownLabels(labels, held_out=None, folds=rng.integers(0, 2, labels.shape, dtype=np.int8))


def _random_inputs(recipe: Recipe, cached: nn.Module | None, rows: int) -> np.ndarray:
    """(rows, 1 view, channels, H, W): maps of what is cached, or images where nothing is."""
    side = recipe.image_size
    shape = (3, side, side) if cached is None else map_shape(cached, side)
    block = np.random.default_rng(0).standard_normal((recipe.batch_size, 1, *shape), dtype=np.float32)
    return np.tile(block.astype(np.float16), (rows // recipe.batch_size, 1, 1, 1, 1))


@torch.inference_mode()
def map_shape(backbone: nn.Module, side: int) -> tuple[int, ...]:
    return tuple(backbone.eval()(torch.zeros(1, 3, side, side)).shape[1:])


@torch.inference_mode()
def measure_features(recipe: dict[str, Any], threads: int) -> dict[str, float]:
    """What caching a view costs: `bytes` on the disk, and `seconds`."""
    chosen = Recipe.model_validate(recipe)
    torch.set_num_threads(threads)
    device = choose_device(chosen.device)
    backbone, _ = parts(make_backbone(chosen), chosen)
    assert backbone is not None
    backbone.eval()
    values = int(np.prod(map_shape(backbone, chosen.image_size)))
    images = torch.randn(VIEWS_TIMED, 3, chosen.image_size, chosen.image_size, device=device)
    network = fastest(backbone.to(device), images[:1])
    network(images)  # warms up
    started = time.perf_counter()
    float(network(images).sum())  # waits for the device
    return {"bytes": 2 * values, "seconds": (time.perf_counter() - started) / VIEWS_TIMED}
