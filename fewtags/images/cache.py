"""Features of a frozen backbone, computed once and kept on disk: (images, views, D₀, H, W) float16.

A file is named by all that decides its content: the images and their stamps, the backbone and its weights, the
size and the views. It appears under its name only when complete; until then it grows row by row beside it, so a
run that was killed goes on where it stopped, batch for batch the same.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset

from fewtags.errors import UserError
from fewtags.faults import telling
from fewtags.files import write_text
from fewtags.finite import require_finite
from fewtags.images import shards
from fewtags.images.loading import ImageSource
from fewtags.images.transforms import CROP_SIDES, RESIZE, cached_view
from fewtags.locks import Lock
from fewtags.nn.backbones import Backbone
from fewtags.nn.cut import FrozenStages
from fewtags.nn.inference import fastest
from fewtags.processes import together

FORMAT = 1
LARGEST_FLOAT16 = 65504.0
BAD_FEATURES = ("the backbone's features", "look at these images, or at the backbone's weights")
PATIENCE = 1.0


def cache_folder() -> Path:
    """$FEWTAGS_CACHE, or ~/.cache/fewtags."""
    return Path(os.environ.get("FEWTAGS_CACHE") or "~/.cache/fewtags").expanduser()


@dataclass(frozen=True)
class Views(Dataset[Tensor]):
    """All views of each image: (views, 3, size, size)."""

    images: Sequence[str]
    source: ImageSource
    names: Sequence[str]
    size: int
    seed: int
    mean: Sequence[float]
    std: Sequence[float]
    resize: int
    crop_sides: Sequence[float]
    rows: range | None = None
    """These images alone; None: all. Which crops an image gets goes by its place among all."""

    def __len__(self) -> int:
        return len(self.images if self.rows is None else self.rows)

    def image(self, index: int) -> str:
        return self.images[index if self.rows is None else self.rows[index]]

    def part(self, rows: range) -> Views:
        return replace(self, rows=rows)

    def __getitem__(self, index: int) -> Tensor:
        index = index if self.rows is None else self.rows[index]
        image = self.source.open(self.images[index])
        sizes = (self.size, self.mean, self.std, self.resize, self.crop_sides)
        return torch.stack([cached_view(name, index, self.seed, *sizes)(image) for name in self.names])


def cached_features(
    images: Sequence[str],
    source: ImageSource,
    backbone: Backbone | FrozenStages,
    size: int,
    views: Sequence[str],
    seed: int,
    folder: Path,
    device: torch.device | str = "cpu",
    progress: bool = True,
    resize: int = RESIZE,
    crop_sides: Sequence[float] = CROP_SIDES,
    console: Console | None = None,
    batch_size: int = 16,
    workers: int | None = None,
) -> np.ndarray:
    """(images, views, D₀, H, W) float16, memory-mapped and read-only; computed only if not on disk yet."""
    console = console or Console(stderr=True)
    wanted = Views(images, source, views, size, seed, backbone.mean, backbone.std, resize, crop_sides)
    description = describe(wanted, backbone)
    target = _made(folder) / f"{name_of(description)}.npy"
    if (ready := _found(target, wanted)) is None:
        if together.is_writer():
            about = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
            write_text(target.with_suffix(".json"), about)
        how = backbone, torch.device(device), batch_size, workers, console if progress else None
        _compute_together(target, wanted, how, console)
        ready = _found(target, wanted)
    if ready is None:
        raise RuntimeError(f"{target}: written, but not readable")
    with suppress(OSError):  # the cache may be read-only
        os.utime(target.with_suffix(".json"))  # when it was last used, for `fewtags cache`
    return ready


def _compute_together(target: Path, wanted: Views, how: tuple[Any, ...], console: Console) -> None:
    """One process writes one file; several write one after the other of many, each its own."""
    if together.size() == 1 or not len(wanted):
        return _compute_once(target, wanted, how, console)
    shards.compute_share(
        target, len(wanted), lambda file, rows: _compute_once(file, wanted.part(rows), how, console)
    )


def _found(target: Path, wanted: Views) -> np.ndarray | None:
    """The features in one file, or in those that processes wrote together; None if some process sees none."""
    found: Any = opened(target, wanted)
    if found is None:
        found = shards.opened_shards(target, len(wanted), lambda file, rows: opened(file, wanted.part(rows)))
    return found if shards.everyone(found is not None) else None  # one that is in several is read like an array


def _compute_once(target: Path, wanted: Views, how: tuple[Any, ...], console: Console) -> None:
    with _only_one(target, console):
        if opened(target, wanted) is None:
            compute(target, wanted, *how)


def describe(wanted: Views, backbone: Backbone | FrozenStages) -> dict[str, object]:
    """All that decides the features, small enough to read; long lists as their number and hash."""
    stamps = [wanted.source.stamp(image) for image in wanted.images]
    return {
        "format": FORMAT,
        "images": len(wanted.images),
        "image_list": _hash(wanted.images),
        "content": _hash(stamps),
        "backbone": backbone.name,
        "weights": backbone.fingerprint(),
        "mean": list(wanted.mean),
        "std": list(wanted.std),
        "size": wanted.size,
        "views": list(wanted.names),
        "resize": wanted.resize,
        "crop_sides": [float(side) for side in wanted.crop_sides],
        "seed": wanted.seed,
    }


def name_of(description: dict[str, object]) -> str:
    return f"{description['backbone']}-{_hash([json.dumps(description, sort_keys=True)])}".replace("/", "_")


def _hash(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]


def opened(path: Path, wanted: Views) -> np.ndarray | None:
    """The finished file, or None if it is not there or is damaged."""
    try:
        maps = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return maps if maps.shape[:2] == (len(wanted), len(wanted.names)) else None


def compute(
    target: Path,
    wanted: Views,
    backbone: Backbone | FrozenStages,
    device: torch.device,
    batch_size: int,
    workers: int | None,
    console: Console | None,
) -> None:
    """Append batch after batch to the unfinished file, then give it its name."""
    noise = torch.Generator().manual_seed(0)
    sample = torch.randn(1, 3, wanted.size, wanted.size, generator=noise).to(device)
    network = fastest(backbone, sample)
    with torch.inference_mode():
        shape = (len(wanted), len(wanted.names), *network(sample).shape[1:])
    partial = target.with_suffix(".partial")
    done = finished_rows(partial, shape, batch_size)
    _check_space(target.parent, (len(wanted) - done) * row_bytes(shape))
    with telling(partial), partial.open("r+b" if done else "w+b") as file:
        if not done:
            file.write(header(shape))
        file.truncate(len(header(shape)) + done * row_bytes(shape))
        file.seek(0, os.SEEK_END)
        loader = _loader(wanted, done, device, batch_size, workers)
        for batch in _shown(loader, wanted, done, backbone.name, console):
            maps = features(network, batch.to(device))
            require_finite(maps, [wanted.image(row) for row in range(done, done + len(maps))], *BAD_FEATURES)
            file.write(maps.tobytes())
            done += len(maps)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, target)


def header(shape: tuple[int, ...]) -> bytes:
    """The beginning of a .npy file of this shape."""
    start = io.BytesIO()
    layout = {"descr": "<f2", "fortran_order": False, "shape": tuple(map(int, shape))}
    np.lib.format.write_array_header_1_0(start, layout)
    return start.getvalue()


def row_bytes(shape: tuple[int, ...]) -> int:
    return 2 * int(np.prod(shape[1:]))


def finished_rows(partial: Path, shape: tuple[int, ...], batch_size: int) -> int:
    """Images an interrupted run has finished, in whole batches so that going on repeats the same batches."""
    start = header(shape)
    if not partial.is_file():
        return 0
    with partial.open("rb") as file:
        if file.read(len(start)) != start:
            return 0
    rows = (partial.stat().st_size - len(start)) // row_bytes(shape)
    return min(rows - rows % batch_size, shape[0])


@torch.inference_mode()
def features(network: nn.Module, batch: Tensor) -> np.ndarray:
    """batch (B, views, 3, S, S) → (B, views, D₀, H, W) float16, large values cut off, infinity as NaN."""
    images = batch.flatten(0, 1).contiguous(memory_format=torch.channels_last)
    maps = network(images)
    maps = maps.masked_fill(maps.isinf(), torch.nan).clamp(-LARGEST_FLOAT16, LARGEST_FLOAT16).half()
    return maps.unflatten(0, batch.shape[:2]).contiguous().cpu().numpy()


def _loader(
    wanted: Views, done: int, device: torch.device, batch_size: int, workers: int | None
) -> DataLoader[Tensor]:
    """The images still to do. On the CPU the backbone needs every core: loading in processes would not help."""
    if workers is None:
        workers = 0 if device.type == "cpu" else min(8, os.cpu_count() or 1)
    rest = Subset(wanted, range(done, len(wanted)))
    return DataLoader(rest, batch_size, shuffle=False, num_workers=workers)


def _shown(
    loader: DataLoader[Tensor], wanted: Views, done: int, name: str, console: Console | None
) -> Iterator[Tensor]:
    """The same batches, with a progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=console is None, transient=True) as bar:
        task = bar.add_task(f"{name} features, {len(wanted.names)} views", total=len(wanted), completed=done)
        for batch in loader:
            yield batch
            bar.advance(task, len(batch))


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"the features need {needed / 1e9:.1f} GB, and {folder} has {free / 1e9:.1f} GB left; set "
            "FEWTAGS_CACHE to a folder with more, or use a smaller image_size, fewer views, or limit"
        )


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UserError(f"{folder}: the cache cannot be kept here ({problem}); set FEWTAGS_CACHE") from problem
    return folder


@contextmanager
def _only_one(target: Path, console: Console) -> Iterator[None]:
    """Two processes that want the same features: one computes, the other waits, says so, and reads."""
    busy = "another process is computing the same features"
    lock = Lock(target.with_suffix(".lock"), target, busy)
    lock.wait(lambda told: console.print(told, markup=False, highlight=False, soft_wrap=True), PATIENCE)
    try:
        yield
    finally:
        lock.release()
