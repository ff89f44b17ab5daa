"""Open Images straight to sparse labels: 60 million lines become 3 bytes each, and no dense table is made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fewtags.errors import Problems, UserError
from fewtags.labels.formats.open_images import (
    SUFFIXES,
    VERIFIED,
    _class_names,
    _only_file,
    _test_part,
    label_chunks,
)
from fewtags.labels.sparse import SparseLabels, SparseTable, labels_from_entries
from fewtags.labels.split import TEST, TRAIN


class Entries(NamedTuple):
    row: np.ndarray
    category: np.ndarray
    value: np.ndarray


def read_sparse(path: str | Path) -> tuple[SparseTable, Path, tuple[str, ...]]:
    """As `open_images.read`: the labels, the folder that image paths start from, and notes."""
    root = Path(path)
    names = _class_names(_only_file(root, "*class-descriptions*.csv"))
    test_part, notes = _test_part(root)
    images: list[str] = []
    splits: list[str] = []
    found: list[Entries] = []
    for split, part in ((TRAIN, "train"), (TEST, test_part)):
        files = _image_names(root / part)
        file = _only_file(root, f"*{part}-annotations-human-imagelabels*.csv")
        found += _entries(file, files, pd.Index(list(names)), len(images))
        images += [f"{part}/{name}" for name in files]
        splits += [split] * len(files)
    labels, used = _labels(root, found, images, list(names))
    categories = [name for place, name in enumerate(names.values()) if used[place]]
    values: Any = labels
    return SparseTable(tuple(images), tuple(categories), values, tuple(splits)), root, notes


def _image_names(folder: Path) -> list[str]:
    found = os.scandir(folder) if folder.is_dir() else ()
    names = sorted(entry.name for entry in found if Path(entry.name).suffix.lower() in SUFFIXES)
    if not names:
        raise UserError(f"{folder}: there are no images")
    return names


def _entries(file: Path, names: list[str], labels: pd.Index, first: int) -> Iterator[Entries]:
    """The verified labels of these images, a block of lines at a time; `first` is the row of the first image."""
    stems = pd.Index([name.rpartition(".")[0] for name in names])
    for chunk in label_chunks(file):
        yield _of_chunk(file, chunk, stems, labels, first)


def _of_chunk(file: Path, chunk: pd.DataFrame, stems: pd.Index, labels: pd.Index, first: int) -> Entries:
    row, category = stems.get_indexer(pd.Index(chunk["ImageID"])), labels.get_indexer(pd.Index(chunk["LabelName"]))
    counts = (row >= 0) & (category >= 0)
    kept = chunk[counts]
    value = kept["Confidence"].map(VERIFIED)
    problems = Problems(str(file))
    for index in kept.index[value.isna()]:
        problems.add(f"line {index + 2}, column 'Confidence': {kept.at[index, 'Confidence']!r} is not 1 or 0")
    problems.raise_if_any()
    return Entries(
        (row[counts] + first).astype(np.int32), category[counts].astype(np.uint16), value.to_numpy(np.int8)
    )


def _labels(
    root: Path, found: list[Entries], images: list[str], names: list[str]
) -> tuple[SparseLabels, np.ndarray]:
    """All entries as labels of the categories that have any, and which of `names` those are."""
    row, category, value = (np.concatenate(column) for column in zip(*found, strict=True))
    used = np.bincount(category, minlength=len(names)) > 0
    if not used.any():
        raise UserError(f"{root}: no image has a human-verified label of a category that is described")
    labels = labels_from_entries(row, (np.cumsum(used) - 1)[category], value, (len(images), int(used.sum())))
    return _said_once(root, labels, images, [name for place, name in enumerate(names) if used[place]]), used


def _said_once(root: Path, labels: SparseLabels, images: list[str], names: list[str]) -> SparseLabels:
    """Drop repetitions; a label that is both present and absent is an error."""
    repeated = np.zeros(len(labels.category), bool)
    problems = Problems(str(root))
    for rows, place in labels.blocks():
        row, category, value = labels.row_of_entries(rows), labels.category[place], labels.value[place]
        again = (row[1:] == row[:-1]) & (category[1:] == category[:-1])
        repeated[place][1:] = again
        for entry in np.flatnonzero(again & (value[1:] != value[:-1])):
            problems.add(f"{images[rows[row[entry]]]}: both present and absent: {names[category[entry]]}")
    problems.raise_if_any()
    return labels.kept(~repeated)
