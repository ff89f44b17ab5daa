"""What the processes of the workshop do; each function returns what its process has found."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from fewtags.cli import app
from fewtags.images.cache import cached_features
from fewtags.methods import METHODS
from fewtags.nn.backbones import build_backbone
from fewtags.processes import together
from fewtags.recipe import Recipe
from fewtags.training.run import train
from tests.benchmarks.test_gpu_ready import OPTIONS
from tests.command import as_yaml
from tests.conftest import TINY
from tests.processes.shares import MOMENTS, stepped

RUN = TINY | {"method": "hst", "known": 0.5, "dropout": 0.0, "batch_size": 8, "epochs": 3}


def functions(folder: Path) -> dict[str, Any]:
    rank, size = together.rank(), together.size()
    rows = torch.arange(rank + 1.0).unsqueeze(1) + 10 * rank  # one row more of each process
    leaf = torch.tensor([[1.0 + rank]], requires_grad=True)
    whole = together.all_rows_with_gradient(leaf)
    (whole.squeeze(1) @ torch.arange(1.0, size + 1) * (rank + 1)).backward()
    summed = torch.tensor([2.0 + rank], requires_grad=True)
    (together.sum_with_gradient(summed) * (rank + 1)).sum().backward()
    torch.manual_seed(rank)
    return {
        "total": together.total(torch.tensor([1.0 + rank])),
        "largest": together.largest(torch.tensor(rank)),
        "smallest": together.smallest(torch.tensor(rank)),
        "all_rows": together.all_rows(rows),
        "array": together.all_array_rows(rows.numpy().astype(np.float16)),
        "nothing": together.all_array_rows(np.zeros((0, 3), np.int16)),
        "whole": whole.detach(),
        "leaf": leaf.grad,
        "summed": summed.grad,
        "first": together.from_first(torch.tensor(7 - rank)),
        "said": together.said_by_first(f"from {rank}"),
        "all": together.said_by_all(rank),
        "share": [together.own_share(count, unit) for count, unit in ((10, 1), (10, 4), (3, 4), (0, 4))],
        "random": together.random_rows(8 // size, 2),
    }


def steps(folder: Path) -> dict[str, Any]:
    """All methods; of four processes, after warm-up alone."""
    moments = list(MOMENTS) if together.size() < 4 else ["later"]
    return {f"{name} {when}": stepped(name, MOMENTS[when], {}) for name in METHODS for when in moments}


def options(folder: Path) -> dict[str, Any]:
    """Settings of hst, with two processes."""
    if together.size() == 4:
        return {}
    more = [
        {"threshold_labels": "holdout"},
        {"threshold_labels": "all"},
        {"absent_pairs": "include"},
        {"known_normalization": "image"},
        {"known_normalization": "categories"},
        {"contrast_queue": 0},
        {"pair_loss": "bce"},
    ]
    return {str(settings): stepped("hst", MOMENTS["later"], settings) for settings in [*OPTIONS, *more]}


class Squares:
    """Images that are made from their name; remembers which were opened."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, image: str) -> Image.Image:
        self.opened.append(image)
        pixels = np.random.default_rng(int(image)).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        return Image.fromarray(pixels)

    def stamp(self, image: str) -> str:
        return image


def cache(folder: Path) -> dict[str, Any]:
    """Into one folder for all numbers of processes: four find what two have cached. One, alone, has its own."""
    torch.manual_seed(0)
    backbone, source = build_backbone("test_resnet", pretrained=False), Squares()
    place = folder / ("cache" if together.size() > 1 else "cache-of-one")
    names = [str(number) for number in range(150)]
    settings: dict[str, Any] = {"size": 32, "views": ("plain", "crop1"), "seed": 0, "progress": False}
    maps = cached_features(names, source, backbone, folder=place, **settings)
    some = {"row": maps[77], "view": maps[149, 1], "part": maps[30:71, 0], "all": maps[:, 1], "last": maps[-1]}
    return {"opened": source.opened, "shape": maps.shape, **{k: np.array(v) for k, v in some.items()}}


class Written:
    """Which files below a folder this process opens for writing, renames to or removes."""

    def __init__(self, folder: Path):
        self.folder, self.found, self.active = str(folder), set[str](), True
        sys.addaudithook(self._see)

    def _see(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active or event not in ("open", "os.rename", "os.remove", "os.mkdir"):
            return
        if event == "open" and not int(arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        path = arguments[1] if event == "os.rename" else arguments[0]
        if isinstance(path, str | os.PathLike) and os.path.abspath(path).startswith(self.folder):
            self.found.add(os.path.relpath(path, self.folder))


def runs(folder: Path) -> dict[str, Any]:
    """Train; and two processes go on with what one began."""
    size, data, written = together.size(), str(folder / "data"), Written(folder / "runs")
    train(data, Recipe(**RUN), folder / "runs" / f"by-{size}")
    if size == 2:
        target = folder / "runs" / "resumed"
        if together.is_writer():
            half_done(folder / "runs" / "by-1", target)
        together.wait_for_all()
        train(data, Recipe(**RUN), target, resume=True)
    written.active = False
    return {"written": sorted(written.found)}


def commands(folder: Path) -> dict[str, Any]:
    """`train` to its end, report included, which one process writes alone: the last task, as the others leave."""
    size, settings = together.size(), [f"--set={name}={as_yaml(value)}" for name, value in RUN.items()]
    if size == 2:
        out = str(folder / "commands")
        app(["train", str(folder / "data"), *settings, "--set=epochs=1", "--out", out], standalone_mode=False)
    return {"left": together.size()}


def half_done(source: Path, target: Path) -> None:
    """The run as it was before its last epoch."""
    shutil.copytree(source, target)
    sorted((target / "checkpoints").glob("*.safetensors"))[-1].unlink()
    for name in ("metrics.json", "model.safetensors", "labels.json"):
        (target / name).unlink()


def uses(folder: Path) -> dict[str, Any]:
    """Predict and complete with the run of one process."""
    size, run = together.size(), folder / "runs" / "by-1"
    out = folder / "uses" / str(size)
    asked = ["--devices", "2", "--nodes", "2"] if size == 4 else []
    written = Written(folder / "uses")
    images = str(folder / "data" / "images")
    app(["predict", str(run), images, "--out", str(out / "tags.csv"), *asked], standalone_mode=False)
    data = str(folder / "unlabelled")
    app(["complete", str(run), data, "--out", str(out / "filled"), "--json", *asked], standalone_mode=False)
    written.active = False
    return {"written": sorted(written.found)}
