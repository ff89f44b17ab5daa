"""What 9 million images and 600 categories would cost, from what one image costs here.

    python -m benchmarks.scale_cost
    python -m benchmarks.scale_cost --processes 1 64

Measured: decoding a photograph-sized JPEG and computing its map with the default backbone, and a training step of
the default recipe on maps, with as many known labels an image as Open Images has, in processor time of one
thread. The rest is multiplication.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image

from fewtags.batch import Batch
from fewtags.images.loading import decoded
from fewtags.images.transforms import evaluation_transform
from fewtags.methods import METHODS, Setting
from fewtags.methods.base import Method, Moment
from fewtags.nn.backbones import build_backbone
from fewtags.nn.inference import fastest
from fewtags.recipe import Recipe
from fewtags.training.data import Collate, KnownLabels
from fewtags.training.module import make_optimizer
from fewtags.training.prepare import random_folds

IMAGES, CATEGORIES, KNOWN_AN_IMAGE, PRESENT_SHARE = 9_000_000, 600, 7, 0.4
SIDE, CHANNELS, REPEATS = 7, 1280, 3
LATE = Moment(epoch=99, progress=99.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 16, 128])
    parser.add_argument("--method", default="hst")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    recipe = Recipe(method=arguments.method)
    print(f"one core, {arguments.method}, {recipe.backbone}, {CATEGORIES} categories")
    seen: dict[str, float] = {}
    for name, work in {"decode": decoding, "backbone": backbone_pass, "step": step, "walk": walk}.items():
        seen[name] = work(recipe)
        print(f"{name:10} {1000 * seen[name]:8.2f} ms of a core an image", flush=True)
    views, row = len(recipe.views), 2 * CHANNELS * SIDE * SIDE
    print(f"features   {row / 1000:8.1f} kB a view, {IMAGES * views * row / 1e12:.1f} TB with {views} views")
    for count in arguments.processes:
        print(
            f"{count:6} processes: " + ", ".join(f"{k} {v:,.1f} h" for k, v in hours(seen, views, count).items())
        )


def hours(seen: dict[str, float], views: int, processes: int) -> dict[str, float]:
    """For all images: caching all views, an epoch, a renewal of prototypes."""
    each = {
        "caching": seen["decode"] + views * seen["backbone"],
        "an epoch": seen["step"],
        "a walk": seen["walk"],
    }
    return {name: IMAGES * seconds / processes / 3600 for name, seconds in each.items()}


def median_of(work: Callable[[], object], images: int) -> float:
    """Processor seconds an image, the median of a few; the first pays for warming up.

    Not those of the clock: with one thread they say what an image costs a core, whatever else the machine does.
    """
    work()
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return sorted(seconds)[REPEATS // 2] / images


def decoding(recipe: Recipe, count: int = 16) -> float:
    """A 1024 × 768 JPEG, the size in which Open Images is handed out, to a tensor."""
    noise = np.random.default_rng(0).integers(0, 255, (96, 128, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize((1024, 768), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
    transform = evaluation_transform(recipe.image_size, (0.5,) * 3, (0.5,) * 3)

    def work() -> None:
        for _ in range(count):
            transform(decoded(Image.open(io.BytesIO(file.getvalue()))))

    return median_of(work, count)


def backbone_pass(recipe: Recipe, count: int = 16) -> float:
    sample = torch.randn(count, 3, recipe.image_size, recipe.image_size)
    network = fastest(build_backbone(recipe.backbone), sample[:1])
    images = sample.contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        return median_of(lambda: network(images), count)


def made(recipe: Recipe) -> tuple[Method, Batch]:
    rng, images = np.random.default_rng(0), recipe.batch_size
    known = rng.random((images, CATEGORIES)) < KNOWN_AN_IMAGE / CATEGORIES
    values = np.where(rng.random(known.shape) < PRESENT_SHARE, 1, -1)
    labels = np.where(known, values, 0).astype(np.int8)
    names = tuple(f"c{c}" for c in range(CATEGORIES))
    method = METHODS[recipe.method](Setting(recipe, names, CHANNELS, torch.from_numpy(labels).float()))
    maps = torch.randn(images, CHANNELS, SIDE, SIDE)
    batch = Collate(KnownLabels(labels, folds=random_folds(labels.shape, 0)), 0)
    return method, batch(([(row, 0) for row in range(images)], maps))


def step(recipe: Recipe) -> float:
    """Forward, losses, backward and the optimiser."""
    method, batch = made(recipe)
    optimizer = make_optimizer(method.parameter_groups(), recipe)

    def work() -> None:
        terms = method.losses(method(batch.inputs), batch, LATE).terms
        torch.stack(list(terms.values())).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return median_of(work, len(batch.labels))


def walk(recipe: Recipe) -> float:
    """A forward pass without gradient, as for prototypes."""
    method, batch = made(recipe)
    method.eval()
    with torch.no_grad():
        return median_of(lambda: method(batch.inputs), len(batch.labels))


if __name__ == "__main__":
    main()
