"""The same small table on disk in every format that is read, so that its label files can be damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from fewtags.labels.formats import (
    coco,
    coco_json,
    cvat,
    fiftyone,
    folder,
    label_studio_tasks,
    open_images,
    tags,
    visual_genome,
    voc,
)
from fewtags.labels.table import LabelTable

ROWS, SPLIT_AT = 6, 4
SPLITS = ("train",) * SPLIT_AT + ("test",) * (ROWS - SPLIT_AT)


@dataclass(frozen=True)
class Form:
    prefix: str
    """What stands before the path in DATA: `coco:`, or nothing."""
    place: Callable[[int], str]
    """Row → the image's path."""
    write: Callable[[LabelTable, Path], object]
    categories: tuple[str, ...] = ("cat", "dog, big", 'a "car"', "日本")
    values: tuple[int, ...] = (1, 0, -1)


def _split_place(pattern: str) -> Callable[[int], str]:
    return lambda row: pattern.format(split=SPLITS[row], row=row)


PLAIN = ("cat", "dog", "car", "tree")
FORMS: dict[str, Form] = {
    "csv": Form("", _split_place("images/{row}.png"), lambda t, f: folder.write(t, f, form="csv")),
    "parquet": Form("", _split_place("images/{row}.png"), lambda t, f: folder.write(t, f, form="parquet")),
    "coco": Form("coco:", _split_place("{split}/{row}.png"), coco_json.write),
    "fiftyone": Form("fiftyone:", _split_place("{split}/data/{row}.png"), fiftyone.write),
    "label-studio": Form("label-studio:", _split_place("images/{row}.png"), label_studio_tasks.write),
    "cvat": Form("cvat:", _split_place("images/{split}/{row}.png"), cvat.write),
    "openimages": Form("openimages:", _split_place("{split}/{row}.png"), open_images.write),
    "tags": Form("tags:", _split_place("images/{row}.png"), tags.write, PLAIN, (1, 0)),
    "voc": Form("voc2007:", lambda row: f"JPEGImages/{row:06d}.jpg", voc.write, tuple(voc.CATEGORIES)),
    "coco2014": Form(
        "coco2014:",
        lambda row: f"{'train' if row < SPLIT_AT else 'val'}2014/{row}.png",
        coco.write,
        PLAIN,
        (1, -1),
    ),
    "vg200": Form(
        "vg200:",
        lambda row: f"VG_100K/{row}.png",
        visual_genome.write,
        tuple(f"thing {number}" for number in range(200)),
        (1, -1),
    ),
}


def make(name: str, root: Path) -> Path:
    """A whole data set of this form in the new folder `root`."""
    form = FORMS[name]
    rng = np.random.default_rng(len(name))
    values = rng.choice(form.values, (ROWS, len(form.categories))).astype(np.int8)
    values[0], values[1] = max(form.values), min(form.values)  # every category is known somewhere
    images = tuple(form.place(row) for row in range(ROWS))
    for number, image in enumerate(images):
        (root / image).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (40 * number, 90, 30)).save(root / image)
    form.write(LabelTable(images, form.categories, values, SPLITS), root)
    return root


def copied(base: Path, target: Path) -> Path:
    shutil.copytree(base, target)
    return target


def label_files(root: Path) -> list[Path]:
    """Everything that is no image."""
    return sorted(f for f in root.rglob("*") if f.is_file() and f.suffix not in (".png", ".jpg"))
