"""`fewtags new DIR`: a label file to fill in for a folder of images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.images.loading import list_images
from fewtags.labels.formats.folder import CSV_NAME, IMAGE, PARQUET_NAME, SPLIT, csv_text, label_columns
from fewtags.labels.split import TRAIN
from fewtags.labels.table import UNKNOWN, LabelTable


def new_template(folder: Path, categories: Sequence[str]) -> Path:
    """Write labels.csv with a row per image and every label unknown (blank). Never overwrites.

    Without categories it has the image column alone, to add one column for each.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    for name in (CSV_NAME, PARQUET_NAME):
        if (folder / name).exists():
            raise UserError(f"{folder / name} is there already; it is left as it is")
    names = _checked([name.strip() for name in categories])
    images = tuple(list_images(folder))
    if not images:
        raise UserError(f"{folder}: there are no images")
    values = np.full((len(images), len(names)), UNKNOWN, dtype=np.int8)
    table = LabelTable(images, tuple(names), values, (TRAIN,) * len(images))
    # No split column: all images would be training images, and the seeded split serves better.
    columns = [(name, cells) for name, cells in label_columns(table) if name != SPLIT]
    write_text(folder / CSV_NAME, csv_text(columns))
    return folder / CSV_NAME


def _checked(names: list[str]) -> list[str]:
    problems = Problems("categories")
    for number, name in enumerate(names):
        if not name:
            problems.add(f"number {number + 1} is blank")
        elif name in (IMAGE, SPLIT):
            problems.add(f"{name!r} is the name of another column")
        elif name in names[:number]:
            problems.add(f"{name!r} is named twice")
    problems.raise_if_any()
    return names
