"""Sparse label shards: a folder for millions of images.

sparse.json: categories, number of images, where the images are (`image_root`, from this folder)
images-00000-of-00004.parquet: image (its path from the image root), split
labels-00000-of-00004.parquet: image (its row among all, from 0), category (its number), value

Values are 1 (present) and -1 (absent); a label that is not stored is unknown. Each shard holds a run of images and
their labels, sorted by image.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fewtags.errors import Problems, UserError
from fewtags.files import whole_file, write_text
from fewtags.labels.formats import provenance
from fewtags.labels.formats.loaded import Loaded, read_json
from fewtags.labels.sparse import MOST_CATEGORIES, SparseLabels, SparseTable, sparse_table
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import LabelTable

ABOUT, FORMAT, VERSION = "sparse.json", "fewtags sparse labels", 1
IMAGES_A_SHARD = 250_000
COLUMNS = {"image": pa.int64(), "category": pa.int32(), "value": pa.int8()}


def write(table: LabelTable, folder: Path) -> None:
    """A dense table, whose images lie in the folder too; who completed what is in labels.meta.parquet."""
    write_shards(sparse_table(table), folder, folder)
    provenance.write(table, folder / "labels")


def write_shards(table: SparseTable, folder: Path, image_root: Path, images_a_shard: int = IMAGES_A_SHARD) -> None:
    """sparse.json is written last: a folder without it is unfinished."""
    if len(table.categories) > MOST_CATEGORIES:
        raise UserError(f"{len(table.categories)} categories: sparse labels take {MOST_CATEGORIES} at most")
    starts = range(0, len(table), images_a_shard)
    for shard, start in enumerate(starts):
        rows = range(start, min(start + images_a_shard, len(table)))
        _write(_images_of(table, rows), folder / _name("images", shard, len(starts)))
        _write(_labels_of(table.labels, rows), folder / _name("labels", shard, len(starts)))
    about = {
        "format": FORMAT,
        "version": VERSION,
        "images": len(table),
        "shards": len(starts),
        "image_root": os.path.relpath(image_root.resolve(), folder.resolve()),
        "categories": list(table.categories),
    }
    write_text(folder / ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def _name(kind: str, shard: int, shards: int) -> str:
    return f"{kind}-{shard:05d}-of-{shards:05d}.parquet"


def _write(table: pa.Table, file: Path) -> None:
    with whole_file(file) as draft:
        pq.write_table(table, draft, compression="zstd")


def _images_of(table: SparseTable, rows: range) -> pa.Table:
    names, splits = (list(column[rows.start : rows.stop]) for column in (table.images, table.splits))
    return pa.table({"image": names, "split": pa.array(splits).dictionary_encode()})


def _labels_of(labels: SparseLabels, rows: range) -> pa.Table:
    place = slice(int(labels.starts[rows.start]), int(labels.starts[rows.stop]))
    image = labels.row_of_entries(rows) + rows.start
    return pa.table({"image": image, "category": labels.category[place], "value": labels.value[place]})


def read(path: str | Path) -> Loaded:
    """The labels as a dense table, for commands that want all of them at once."""
    table, root = read_sparse(path)
    return Loaded(provenance.read(table.dense(), Path(path) / "labels", strict=False), root)


def read_for_training(path: str | Path) -> Loaded:
    """Sparse, unless some labels were completed: who gave a label is told by dense tables alone."""
    return read(path) if provenance.meta_file(Path(path) / "labels").is_file() else Loaded(*read_sparse(path))


def read_sparse(path: str | Path) -> tuple[SparseTable, Path]:
    """The labels, and the folder that image paths start from."""
    folder = Path(path)
    about = _about(folder)
    images: list[str] = []
    splits: list[str] = []
    parts: list[tuple[np.ndarray, ...]] = []
    for shard in range(about["shards"]):
        names = folder / _name("images", shard, about["shards"])
        listed = _parquet(names, ["image", "split"])
        first = len(images)
        images += listed["image"].to_pylist()
        splits += _splits(listed["split"].to_pylist(), names)
        entries = folder / _name("labels", shard, about["shards"])
        parts.append(_entries(entries, range(first, len(images)), len(about["categories"])))
    if len(images) != about["images"]:
        raise UserError(f"{folder / ABOUT}: says {about['images']} images, the shards have {len(images)}")
    return _table(images, splits, parts, tuple(about["categories"])), (folder / about["image_root"]).resolve()


def _table(
    images: list[str], splits: list[str], parts: list[tuple[np.ndarray, ...]], categories: tuple[str, ...]
) -> SparseTable:
    counts, category, value = (np.concatenate([part[place] for part in parts]) for place in range(3))
    starts = np.concatenate([[0], np.cumsum(counts)])
    labels: Any = SparseLabels(starts, category, value, len(categories))
    return SparseTable(tuple(images), categories, labels, tuple(splits))


def _about(folder: Path) -> dict[str, Any]:
    file = folder / ABOUT
    about = read_json(file)
    kinds = {"images": int, "shards": int, "image_root": str, "categories": list}
    if not isinstance(about, dict) or about.get("format") != FORMAT or about.get("version") != VERSION:
        raise UserError(f"{file}: not {FORMAT} of version {VERSION}; write it with `fewtags convert --to sparse`")
    for name, kind in kinds.items():
        if not isinstance(about.get(name), kind):
            raise UserError(f"{file}: {name!r} is missing or wrong; write it anew with `fewtags convert`")
    if not about["categories"] or len(set(map(str, about["categories"]))) < len(about["categories"]):
        raise UserError(f"{file}: no categories, or one that is there twice")
    return about


def _parquet(file: Path, columns: list[str]) -> pa.Table:
    try:
        return pq.read_table(file, columns=columns)
    except FileNotFoundError as problem:
        raise UserError(f"{file}: there is no such file; the folder is incomplete") from problem
    except (pa.ArrowException, OSError) as problem:
        wanted = ", ".join(columns)
        raise UserError(f"{file}: not a Parquet file with the columns {wanted} ({problem})") from problem


def _splits(found: list[Any], file: Path) -> list[str]:
    problems = Problems(str(file))
    for row, split in enumerate(found):
        if split not in (TRAIN, TEST):
            problems.add(f"row {row}, column 'split': {split!r} is not {TRAIN} or {TEST}")
    problems.raise_if_any()
    return [TRAIN if split == TRAIN else TEST for split in found]


def _entries(file: Path, rows: range, categories: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """→ how many labels each image of the shard has, and their categories and values."""
    columns = _parquet(file, list(COLUMNS))
    try:
        if any(columns[name].null_count for name in COLUMNS):
            raise pa.ArrowInvalid("some are empty")
        image, category, value = (columns[name].cast(kind).to_numpy() for name, kind in COLUMNS.items())
    except pa.ArrowException as problem:
        raise UserError(f"{file}: its columns have to be whole numbers ({problem})") from problem
    _check_entries(file, image, category, value, rows, categories)
    counts = np.bincount(image - rows.start, minlength=len(rows))
    return counts, category.astype(np.uint16), value


def _check_entries(
    file: Path, image: np.ndarray, category: np.ndarray, value: np.ndarray, rows: range, categories: int
) -> None:
    problems = Problems(str(file))
    checks = {
        "image": (image, (image < rows.start) | (image >= rows.stop), f"not in {rows.start} .. {rows.stop - 1}"),
        "category": (category, (category < 0) | (category >= categories), f"not in 0 .. {categories - 1}"),
        "value": (value, np.abs(value) != 1, "not 1 (present) or -1 (absent)"),
    }
    for name, (column, wrong, told) in checks.items():
        for row in np.flatnonzero(wrong)[:20]:
            problems.add(f"row {row}, column {name!r}: {column[row]} is {told}")
    places = image * categories + category
    for row in np.flatnonzero(places[1:] <= places[:-1])[:20]:
        problems.add(f"row {row + 1}: not sorted by image and category, or a label that is there twice")
    problems.raise_if_any()
