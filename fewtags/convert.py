"""`fewtags convert SRC DEST`: any readable data set to a folder with labels.csv and images."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image
from rich.progress import track

from fewtags.data import Data, open_data
from fewtags.errors import UserError
from fewtags.images.loading import FolderImages
from fewtags.labels.formats import folder
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import LabelTable

IMAGES = "images"
JPEG_QUALITY = 90
SAMPLE_STREAM = 4


def convert(
    spec: str,
    dest: Path,
    sample: tuple[int, int] | None = None,
    seed: int = 0,
    size: int | None = None,
    tokens: str | None = None,
    difficult: str = "unknown",
    progress: bool = True,
) -> Path:
    """Write SRC as a folder, whole or not at all. Returns the label file.

    `sample`: so many TRAIN, TEST images, drawn by the seed. `size`: images are squashed to size x size JPEG;
    without it, files are copied as they are.
    """
    dest = Path(dest)
    if dest.exists() and (not dest.is_dir() or any(dest.iterdir())):
        raise UserError(f"{dest}: is there already and not empty; choose another folder")
    if size is not None and size < 1:
        raise UserError(f"--size {size}: a side is at least 1 pixel")
    data = open_data(spec, tokens=tokens, seed=seed, difficult=difficult)
    if sample is not None:
        data = replace(data, table=data.table.rows(sampled_rows(data.table, sample, seed)))
    draft = dest.resolve().with_name(f".{dest.resolve().name}.{uuid.uuid4().hex[:8]}")
    try:
        names = _write_images(data, draft, size, progress)
        folder.write(replace(data.table, images=tuple(names)), draft)
        if dest.is_dir():
            dest.rmdir()
        os.replace(draft, dest.resolve())
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return dest / folder.CSV_NAME


def parse_sample(text: str | None) -> tuple[int, int] | None:
    """`10000,4000` → (10000, 4000)"""
    if text is None:
        return None
    train, comma, test = text.partition(",")
    if not (comma and train.strip().isdecimal() and test.strip().isdecimal()):
        raise UserError(f"--sample {text}: write it as TRAIN,TEST, such as 10000,4000")
    return int(train), int(test)


def sampled_rows(table: LabelTable, sample: tuple[int, int], seed: int) -> np.ndarray:
    """Rows of the drawn images, in the table's order."""
    generator = np.random.default_rng((SAMPLE_STREAM, seed))
    splits = np.array(table.splits, dtype=object)
    drawn = []
    for split, count in zip((TRAIN, TEST), sample, strict=True):
        rows = np.flatnonzero(splits == split)
        if not 0 <= count <= len(rows):
            raise UserError(f"--sample {sample[0]},{sample[1]}: there are {len(rows)} {split} images")
        drawn.append(generator.permutation(rows)[:count])
    return np.sort(np.concatenate(drawn))


def _write_images(data: Data, target: Path, size: int | None, progress: bool) -> list[str]:
    names = new_names(data.table.images, ".jpg" if size else _kept_suffix(data))
    for parent in {(target / name).parent for name in names}:
        parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        jobs = [
            threads.submit(_write_image, data, image, target / name, size)
            for image, name in zip(data.table.images, names, strict=True)
        ]
        try:
            for job in track(jobs, "Writing images", disable=not progress, transient=True):
                job.result()
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    return names


def _kept_suffix(data: Data) -> str | None:
    """Files keep their suffix; images that are made on the fly become PNG, which loses nothing."""
    return None if isinstance(data.images, FolderImages) else ".png"


def new_names(images: Sequence[str], suffix: str | None) -> list[str]:
    """Paths below images/: the same names, the folder dropped where names alone are distinct."""
    paths = [PurePosixPath(image) for image in images]
    if len({path.stem if suffix else path.name for path in paths}) == len(paths):
        paths = [PurePosixPath(path.name) for path in paths]
    names = [str(IMAGES / (path.with_suffix(suffix) if suffix else path)) for path in paths]
    if len(set(names)) == len(names):
        return names
    return [
        f"{IMAGES}/{path}{suffix or ''}" for path in paths
    ]  # a.jpg and a.png in one folder: a.jpg.jpg, a.png.jpg


def _write_image(data: Data, image: str, target: Path, size: int | None) -> None:
    if size is not None:
        picture = data.images.open(image).resize((size, size), Image.Resampling.BICUBIC)
        picture.save(target, quality=JPEG_QUALITY)
    elif isinstance(data.images, FolderImages):
        shutil.copyfile(data.images.path(image), target)
    else:
        data.images.open(image).save(target)
