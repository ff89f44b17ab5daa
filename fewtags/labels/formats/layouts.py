"""What `fewtags convert --to` writes: for each format, its writer and where its images go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fewtags.errors import UserError
from fewtags.labels.formats import (
    coco_json,
    cvat,
    fiftyone,
    folder,
    label_studio,
    label_studio_tasks,
    open_images,
    sparse,
    tags,
    voc,
)
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import LabelTable


@dataclass(frozen=True)
class Extras:
    """What some formats say beyond labels."""

    sizes: Sequence[tuple[int, int]]
    """Width and height of each image; empty if the layout does not ask for them."""
    prefix: str = ""
    suggested: Mapping[str, label_studio_tasks.Suggested] | None = None


class Layout(NamedTuple):
    places: Mapping[str, str]
    """Split → the folder of its images."""
    labels: str
    """The file or folder that holds the labels."""
    write: Callable[[LabelTable, Path, Extras], object]
    wants_sizes: bool = False


def _together(place: str) -> dict[str, str]:
    return {TRAIN: place, TEST: place}


LAYOUTS = {
    "folder": Layout(_together("images"), folder.CSV_NAME, lambda t, f, e: folder.write(t, f)),
    "coco": Layout(
        coco_json.PLACES, "annotations", lambda t, f, e: coco_json.write(t, f, e.sizes), wants_sizes=True
    ),
    "voc": Layout(_together("JPEGImages"), "Annotations", lambda t, f, e: voc.write(t, f)),
    "openimages": Layout(
        {TRAIN: "train", TEST: "test"}, "class-descriptions.csv", lambda t, f, e: open_images.write(t, f)
    ),
    "tags": Layout(_together("images"), tags.NAMES, lambda t, f, e: tags.write(t, f)),
    "label-studio": Layout(
        label_studio_tasks.PLACES,
        label_studio.TASKS,
        lambda t, f, e: label_studio_tasks.write(t, f, e.prefix, e.suggested),
    ),
    "fiftyone": Layout(fiftyone.PLACES, "", lambda t, f, e: fiftyone.write(t, f)),
    "cvat": Layout(cvat.PLACES, cvat.ANNOTATIONS, lambda t, f, e: cvat.write(t, f, e.sizes), wants_sizes=True),
    "sparse": Layout(_together("images"), sparse.ABOUT, lambda t, f, e: sparse.write(t, f)),
}


def layout(name: str) -> Layout:
    if name not in LAYOUTS:
        raise UserError(f"--to {name}: there is no such format; it is one of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]
