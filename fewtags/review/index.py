"""The suggestions as the page needs them: built once from the file, then mapped into memory.

10 million suggestions do not fit a request, nor a Python object each. A small array per column answers which
rows match and which is next; the reasons, which are long, stay in an Arrow file from which single rows are read.

    image int32, category int16, probability float32, kind uint8 (decision and origin in one)
    keys int64, key_rows int32    sorted image * C + category, to find the row of an entry
    order_* int32, place_* int32  the rows in each order, and the place of each row in it
    reasons.arrow                 score, intra, intra_because, cross, cross_because, by row
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from fewtags.completion.suggestions import DECISIONS, ORIGINS, SCHEMA, read_suggestions
from fewtags.errors import UserError
from fewtags.faults import telling
from fewtags.files import DRAFT
from fewtags.locks import Lock
from fewtags.review.orders import ORDERS, order_rows

FORMAT = 3
ROWS_A_BATCH = 50_000
ROWS_A_READ = 500
"""Reasons are read in pieces of so many rows. Mapped, a look at one row would take in many pages around it."""
KEPT = 4
"""Indices kept in the cache; older ones are removed."""
REASONS = ("score", "intra", "intra_because", "cross", "cross_because")
COLUMNS = {"image": np.int32, "category": np.int16, "probability": np.float32, "kind": np.uint8}


@dataclass(frozen=True)
class Names:
    """What the codes stand for, and what is known of each category."""

    images: Sequence[str]
    categories: Sequence[str]
    known_present: np.ndarray
    """(C,) present labels known already."""


class Index:
    """An index on disk, opened. Its arrays are read-only and mapped: memory holds only what is looked at."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.image, self.category, self.probability, self.kind = (self._mapped(name) for name in COLUMNS)
        self.keys, self.key_rows = self._mapped("keys"), self._mapped("key_rows")
        self.orders = {name: self._mapped(f"order_{name}") for name in ORDERS}
        self.places = {name: self._mapped(f"place_{name}") for name in ORDERS}
        self.facts: dict[str, Any] = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        self._reasons = ipc.open_file(pa.OSFile(str(folder / "reasons.arrow")))
        self._first_rows = np.array(self.facts["first_rows"])
        self._reading = threading.Lock()

    def __len__(self) -> int:
        return len(self.probability)

    def decision(self, row: int) -> str:
        return DECISIONS[self.kind[row] // len(ORIGINS)]

    def origin(self, row: int) -> str:
        return ORIGINS[self.kind[row] % len(ORIGINS)]

    def row(self, image: int, category: int) -> int | None:
        """The row of an entry; None: it is not among the suggestions."""
        key = image * self.facts["categories"] + category
        place = int(np.searchsorted(self.keys, key))
        return int(self.key_rows[place]) if place < len(self.keys) and self.keys[place] == key else None

    def rows(self, images: np.ndarray, categories: np.ndarray) -> np.ndarray:
        """The rows of many entries; -1: not among the suggestions."""
        if not len(self.keys):
            return np.full(len(images), -1, np.int32)
        keys = images.astype(np.int64) * self.facts["categories"] + categories
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where((images >= 0) & (categories >= 0) & (self.keys[places] == keys), self.key_rows[places], -1)

    def reasons(self, row: int) -> dict[str, Any]:
        batch = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        with self._reading:  # one file, one place in it
            piece = self._reasons.get_batch(batch)
        (found,) = piece.slice(row - int(self._first_rows[batch]), 1).to_pylist()
        return found

    def rest(self, order: str) -> None:
        """Nobody looks at this order just now: give its pages back. They are read again when needed."""
        for array in (self.orders[order], self.places[order]):
            mapped = getattr(array, "_mmap", None)
            if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)

    def _mapped(self, name: str) -> np.ndarray:
        path = self.folder / f"{name}.npy"
        # A file of no bytes cannot be mapped.
        return np.load(path, mmap_mode="r" if path.stat().st_size > 256 else None)


def open_index(suggestions: Path, names: Names, cache: Path) -> Index:
    """The index of this file, from the cache or built now."""
    folder = cache / "review" / _fingerprint(suggestions, names)
    if not (folder / "facts.json").is_file():
        _build_whole(suggestions, names, folder)
    with contextlib.suppress(OSError):  # a cache that can only be read
        os.utime(folder)
    _remove_old(folder)
    return Index(folder)


def _build_whole(suggestions: Path, names: Names, folder: Path) -> None:
    lock = Lock(folder.parent.with_suffix(".lock"), folder, "another process is making an index")
    with telling(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    lock.acquire(-1)
    try:
        _remove_drafts(folder.parent)
        if not folder.exists():  # else somebody built the same meanwhile
            draft = folder.with_name(f".{folder.name}.{DRAFT}")
            draft.mkdir()
            with telling(folder):
                build(suggestions, names, draft)
                os.replace(draft, folder)
    finally:
        _remove_drafts(folder.parent)
        lock.release()


def _remove_drafts(folder: Path) -> None:
    """Only who has the lock builds, so that any other draft was left by a process that was killed."""
    for path in folder.glob(f".*.{DRAFT}"):
        shutil.rmtree(path, ignore_errors=True)


def build(suggestions: Path, names: Names, folder: Path) -> None:
    columns, first_rows = _split_columns(suggestions, names, folder / "reasons.arrow")
    pa.default_memory_pool().release_unused()
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", column)
    _write_keys(columns, names, suggestions, folder)
    for order in ORDERS:
        rows = order_rows(order, columns["probability"], columns["category"], names.known_present)
        np.save(folder / f"order_{order}.npy", rows)
        places = np.empty_like(rows)
        places[rows] = np.arange(len(rows), dtype=np.int32)
        np.save(folder / f"place_{order}.npy", places)
    facts = {"format": FORMAT, "categories": len(names.categories), "first_rows": first_rows}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def _split_columns(suggestions: Path, names: Names, reasons: Path) -> tuple[dict[str, np.ndarray], list[int]]:
    """One pass over the file: codes into arrays, reasons into the Arrow file. Returns where its batches begin."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
    schema = pa.schema([SCHEMA.field(name) for name in REASONS])
    coder = Coder(suggestions, names)
    first_rows = [0]
    with ipc.new_file(str(reasons), schema) as writer:
        for batch in _batches(suggestions):
            for name, codes in coder(batch, first_rows[-1]).items():
                parts[name].append(codes)
            for start in range(0, batch.num_rows, ROWS_A_READ):
                piece = batch.slice(start, ROWS_A_READ).select(list(REASONS))
                writer.write_batch(piece)
                first_rows.append(first_rows[-1] + piece.num_rows)
    empty = {name: np.zeros(0, kind) for name, kind in COLUMNS.items()}
    return {name: np.concatenate([empty[name], *found]) for name, found in parts.items()}, first_rows[:-1]


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The suggestions in pieces; a Parquet file is never read whole."""
    if path.suffix.lower() != ".parquet" or not path.is_file():
        yield from read_suggestions(path).to_batches(ROWS_A_BATCH)
        return
    try:
        file = pq.ParquetFile(path, memory_map=True, pre_buffer=False)
        if missing := [name for name in SCHEMA.names if name not in file.schema_arrow.names]:
            raise UserError(f"{path}: no column {', '.join(missing)}; is it a file of suggestions?")
        for batch in file.iter_batches(ROWS_A_BATCH, columns=SCHEMA.names):
            yield batch.select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise UserError(f"{path}: not readable as suggestions ({str(problem).splitlines()[0]})") from problem


class Coder:
    """Turns a batch of names into codes, and says which row has a name without one."""

    def __init__(self, path: Path, names: Names):
        self.path = path
        self.sets = {
            "image": (pa.array(names.images, pa.string()), "DATA; is it the DATA they were made for?"),
            "category": (pa.array(names.categories, pa.string()), "DATA; is it the DATA they were made for?"),
            "decision": (pa.array(DECISIONS), "one of " + ", ".join(DECISIONS)),
            "origin": (pa.array(ORIGINS), "one of " + ", ".join(ORIGINS)),
        }

    def __call__(self, batch: pa.RecordBatch, first_row: int) -> dict[str, np.ndarray]:
        codes = {name: self._codes(batch, name, first_row) for name in self.sets}
        return {
            "image": codes["image"].astype(np.int32),
            "category": codes["category"].astype(np.int16),
            "probability": self._probabilities(batch, first_row),
            "kind": (codes["decision"] * len(ORIGINS) + codes["origin"]).astype(np.uint8),
        }

    def _codes(self, batch: pa.RecordBatch, name: str, first_row: int) -> np.ndarray:
        values, expected = self.sets[name]
        codes = pc.index_in(batch.column(name), value_set=values).fill_null(-1).to_numpy(zero_copy_only=False)
        if (codes < 0).any():
            row = int(np.argmin(codes))
            place = f"row {first_row + row + 1}, column {name!r}"
            raise UserError(f"{self.path}: {place}: {batch.column(name)[row].as_py()!r} is not in {expected}")
        return codes

    def _probabilities(self, batch: pa.RecordBatch, first_row: int) -> np.ndarray:
        p = batch.column("probability").to_numpy(zero_copy_only=False)
        wrong = ~((p >= 0) & (p <= 1))
        if wrong.any():
            row = int(np.argmax(wrong))
            place = f"row {first_row + row + 1}, column 'probability'"
            raise UserError(f"{self.path}: {place}: {p[row]} is not between 0 and 1")
        return p


def _write_keys(columns: dict[str, np.ndarray], names: Names, path: Path, folder: Path) -> None:
    keys = columns["image"].astype(np.int64) * len(names.categories) + columns["category"]
    rows = np.argsort(keys, kind="stable").astype(np.int32)
    keys = keys[rows]
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if len(twice):
        first, second = rows[twice[0]], rows[twice[0] + 1]
        image, category = columns["image"][first], columns["category"][first]
        entry = f"{names.images[image]}, {names.categories[category]}"
        raise UserError(f"{path}: rows {first + 1} and {second + 1} are about the same entry: {entry}")
    np.save(folder / "keys.npy", keys)
    np.save(folder / "key_rows.npy", rows)


def _fingerprint(suggestions: Path, names: Names) -> str:
    """Changes with the file, with what its names stand for and with what the order rests on."""
    if not suggestions.is_file():
        raise UserError(f"{suggestions}: there is no such file; `fewtags complete RUN DATA --out DIR` writes it")
    with suggestions.open("rb") as file:
        content = hashlib.file_digest(file, "blake2b")
    content.update(json.dumps([FORMAT, list(names.images), list(names.categories)]).encode())
    content.update(np.asarray(names.known_present, np.int64).tobytes())
    return content.hexdigest()[:32]


def _remove_old(current: Path) -> None:
    """An index that somebody else has open stays readable to them: its files vanish when they close it."""
    found = [path for path in current.parent.iterdir() if path.is_dir() and not path.name.startswith(".")]
    for path in sorted(found, key=lambda path: path.stat().st_mtime)[:-KEPT]:
        if path != current:
            shutil.rmtree(path, ignore_errors=True)
