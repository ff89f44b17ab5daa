"""Images a second: decoding and transforms, the backbone, the feature cache. `python -m benchmarks.loading`

Photographs are fabricated: smooth shapes with some grain, so that JPEG files are about as large as a camera's.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from benchmarks.record import Figure, record
from fewtags.images.cache import cached_features
from fewtags.images.loading import FolderImages
from fewtags.images.transforms import CROP_SIDES, RESIZE, evaluation_transform, training_transform
from fewtags.nn.backbones import Backbone, build_backbone
from fewtags.nn.inference import fastest
from fewtags.training.data import CachedMaps

SIZES = {"COCO's size": (640, 480), "a camera's size": (4000, 3000)}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PLAIN = "plain Pillow loop"
BATCH = 16


def write_photographs(folder: Path, count: int, size: tuple[int, int], seed: int = 0) -> list[str]:
    """`count` JPEG files of width × height; their names."""
    rng = np.random.default_rng(seed)
    names = [f"{index:04d}.jpg" for index in range(count)]
    for name in names:
        blobs = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        shapes = blobs.resize(size, Image.Resampling.BICUBIC)
        grain = rng.normal(0, 6, (size[1], size[0], 1))
        pixels = (np.asarray(shapes) + grain).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / name, quality=90)
    return names


class Loaded(Dataset[torch.Tensor]):
    """Opened and transformed as training does, or as evaluation does."""

    def __init__(self, folder: Path, names: Sequence[str], transform: Callable[[Image.Image], torch.Tensor]):
        self.source, self.names, self.transform = FolderImages(folder), names, transform

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.transform(self.source.open(self.names[index]))


def plain_pillow(folder: Path, names: Sequence[str], side: int) -> int:
    """What one would write in a minute: open, convert, resize, scale, normalise."""
    mean, std = np.array(MEAN, np.float32), np.array(STD, np.float32)
    for name in names:
        with Image.open(folder / name) as image:
            pixels = np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR))
        torch.from_numpy(((pixels / np.float32(255) - mean) / std).transpose(2, 0, 1).copy())
    return len(names)


def loaded(data: Loaded, workers: int) -> int:
    return sum(len(batch) for batch in DataLoader(data, BATCH, num_workers=workers))


def per_second(run: Callable[[], int]) -> float:
    started = time.perf_counter()
    count = run()
    return count / (time.perf_counter() - started)


def decoding(count: int, side: int, workers: int) -> list[Figure]:
    found = []
    for size_name, size in SIZES.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            names = write_photographs(folder, count, size)
            plain_pillow(folder, names[:2], side)  # the first use of a library is slow
            plain = per_second(lambda: plain_pillow(folder, names, side))  # noqa: B023
            found += _beside(folder, names, side, workers, plain, f"JPEG of {size_name} to {side}²")
    return found


def _beside(folder: Path, names: list[str], side: int, workers: int, plain: float, what: str) -> list[Figure]:
    evaluation = Loaded(folder, names, evaluation_transform(side, MEAN, STD))
    training = Loaded(folder, names, training_transform(side, RESIZE, CROP_SIDES, MEAN, STD))
    loaded(evaluation, 0)
    kinds = {
        f"{what}, evaluation, one process": (evaluation, 0),
        f"{what}, evaluation, {workers} processes": (evaluation, workers),
        f"{what}, random crops, {workers} processes": (training, workers),
    }
    return [
        Figure("loading", name, per_second(lambda: loaded(*run)), plain, PLAIN, "images/s")  # noqa: B023
        for name, run in kinds.items()
    ]


def inference(backbone: Backbone, count: int, side: int) -> Figure:
    """The cache's network (channels last, batch norms folded) beside the network as it comes."""
    images = torch.randn(min(BATCH, count), 3, side, side)
    plain, fast = backbone.eval(), fastest(backbone, images[:1])
    last = images.contiguous(memory_format=torch.channels_last)
    for network, given in ((plain, images), (fast, last)):
        passed(network, given, 1)  # the first pass is slow
    before = per_second(lambda: passed(plain, images, count))
    after = per_second(lambda: passed(fast, last, count))
    return Figure("loading", f"{backbone.name} at {side}², inference", after, before, "as it comes", "images/s")


@torch.inference_mode()
def passed(network: torch.nn.Module, batch: torch.Tensor, count: int) -> int:
    """Pass batches through until `count` images are done; how many were."""
    passes = -(-count // len(batch))
    for _ in range(passes):
        network(batch)
    return passes * len(batch)


def caching(backbone: Backbone, count: int, side: int) -> Figure:
    """Features of new images, beside the second run, which reads them."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        names = write_photographs(folder, count, SIZES["COCO's size"])

        def run() -> int:
            maps = cached_features(
                names, FolderImages(folder), backbone, side, ("plain",), 0, folder / "cache", progress=False
            )
            data = CachedMaps(maps)
            rows = [(row, 0) for row in range(len(data))]
            batches = (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))
            return sum(len(data.__getitems__(batch)[0]) for batch in batches)

        first, second = per_second(run), per_second(run)
    what = f"{backbone.name} at {side}², cached features, second run"
    return Figure("loading", what, second, first, "first run", "images/s")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--side", type=int, default=224, help="pixels that the network sees")
    parser.add_argument("--backbone", default="lite0")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    backbone = build_backbone(options.backbone, pretrained=False)
    figures = decoding(options.images, options.side, options.workers)
    figures += [part(backbone, options.images, options.side) for part in (inference, caching)]
    record(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
