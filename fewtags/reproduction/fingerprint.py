"""Which data a run was trained on: every image's split, labels and file, in RUN/data.parquet.

A file is known by its content, not by its date, so that a copy of the data counts as the same. Reading all of a
large data set would cost too much: beyond `WHOLE_UP_TO` bytes in all, a file is known by its size and both ends.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fewtags.files import whole_file
from fewtags.images.loading import FolderImages, ImageSource
from fewtags.labels.table import COMPLETED, LabelTable

FILE = "data.parquet"
WHOLE_UP_TO = 256 * 2**20
END = 16 * 2**10
ROWS_AT_ONCE = 50_000
READERS = 8
"""Threads: files are waited for, not computed on."""
COMPLETED_CODE = 3
"""Added to a completed label: it never judges a model, so it is not the same as one that was given."""
MEANING = {-1: "absent", 0: "unknown", 1: "present", 2: "absent (completed)", 4: "present (completed)"}

Reading = Literal["whole", "ends"]
SCHEMA = pa.schema(
    [("image", pa.string()), ("split", pa.string()), ("labels", pa.binary()), ("content", pa.string())]
)


@dataclass(frozen=True)
class Fingerprint:
    """Short names of what is in data.parquet."""

    labels: str
    """Images in their order, splits, categories and labels."""
    images: str
    """The files."""
    reading: Reading


def coded(table: LabelTable, rows: slice | np.ndarray) -> np.ndarray:
    """(rows, categories) int8: the label, plus 3 if it was completed."""
    values = np.asarray(table.values[rows], dtype=np.int8)
    if table.source is None:
        return values
    return values + COMPLETED_CODE * (table.source[rows] == COMPLETED).astype(np.int8)


def write_fingerprint(path: Path, table: LabelTable, source: ImageSource) -> Fingerprint:
    """Write data.parquet, `ROWS_AT_ONCE` images at a time."""
    reading = choose_reading(table.images, source)
    names = json.dumps(table.categories, ensure_ascii=False).encode()
    labels, images = hashlib.sha256(names), hashlib.sha256()
    schema = SCHEMA.with_metadata({b"categories": names, b"reading": reading.encode()})
    with whole_file(path) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for batch in _batches(table, source, reading):
            for image, split, row in zip(*(batch[name] for name in ("image", "split", "labels")), strict=True):
                labels.update(f"{image}\0{split}\0".encode() + row)
            images.update("".join(batch["content"]).encode())
            writer.write_table(pa.table(batch, schema=schema))
    return Fingerprint(labels.hexdigest()[:16], images.hexdigest()[:16], reading)


def _batches(table: LabelTable, source: ImageSource, reading: Reading) -> Iterator[dict[str, list]]:
    for start in range(0, len(table), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        yield {
            "image": list(table.images[rows]),
            "split": list(table.splits[rows]),
            "labels": [row.tobytes() for row in coded(table, rows)],
            "content": contents(table.images[rows], source, reading),
        }


def choose_reading(images: Sequence[str], source: ImageSource) -> Reading:
    """`whole` if the files are small enough together to be read."""
    if not isinstance(source, FolderImages):
        return "whole"
    total = 0
    for image in images:
        total += _size(source.path(image))
        if total > WHOLE_UP_TO:
            return "ends"
    return "whole"


def contents(images: Sequence[str], source: ImageSource, reading: Reading) -> list[str]:
    """A short hash per image, in order; images that are made on the fly have that of their stamp."""
    if not isinstance(source, FolderImages):
        return [_short(source.stamp(image).encode()) for image in images]
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(partial(content, reading=reading), map(source.path, images)))


def content(path: Path, reading: Reading) -> str:
    """`SIZE-HASH` of a file; "unreadable" if it is gone."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if reading == "whole" or size <= 2 * END:
                return f"{size}-{_short(file.read())}"
            first = file.read(END)
            file.seek(-END, 2)
            return f"{size}-{_short(first + file.read())}"
    except OSError:
        return "unreadable"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
