"""Data of today against data.parquet of a run: which images, files, splits and labels differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fewtags.errors import UserError
from fewtags.images.loading import ImageSource
from fewtags.labels.table import LabelTable
from fewtags.reproduction.fingerprint import MEANING, ROWS_AT_ONCE, Reading, coded, contents

MOST_NAMED = 10


@dataclass
class Found:
    """How many differences of one kind, and the first of them in words."""

    one: str
    many: str
    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, names: Sequence[str]) -> None:
        self.count += len(names)
        self.named += names[: MOST_NAMED - len(self.named)]

    def sentence(self) -> str:
        more = f" and {self.count - len(self.named):,} more" if self.count > len(self.named) else ""
        return f"{self.count:,} {self.one if self.count == 1 else self.many}: {', '.join(self.named)}{more}"


def data_differences(path: Path, table: LabelTable, source: ImageSource) -> list[str]:
    """What differs, in sentences; none if nothing does. `path`: the data.parquet of a run."""
    try:
        with pq.ParquetFile(path) as file:
            return _Comparison(file, table, source).sentences()
    except (pa.ArrowException, KeyError, ValueError, TypeError, UnicodeDecodeError) as problem:
        raise UserError(f"{path}: damaged or not written by fewtags ({problem})") from problem


class _Comparison:
    """Walks over the recorded rows once, so that no more than a part of them is in memory."""

    def __init__(self, file: pq.ParquetFile, table: LabelTable, source: ImageSource):
        notes = file.schema_arrow.metadata or {}
        self.file, self.table, self.source = file, table, source
        self.categories = list(map(str, json.loads(notes[b"categories"])))
        self.reading = _reading(notes[b"reading"].decode())
        self.gone = Found("image is gone", "images are gone")
        self.files = Found("image file has another content", "image files have another content")
        self.splits = Found("image is in another split", "images are in another split")
        self.labels = Found("label differs", "labels differ")
        self.images_before: list[str] = []

    def sentences(self) -> list[str]:
        place = {image: row for row, image in enumerate(self.table.images)}
        for batch in self.file.iter_batches(ROWS_AT_ONCE):
            self._compare(batch, place)
        kinds = [*self._categories(), self.gone, self._new(), self.files, self.splits, self.labels]
        found = [kind.sentence() for kind in kinds if kind.count]
        if not found and tuple(self.images_before) != tuple(self.table.images):
            found.append("the images are in another order, and so are those of a training batch")
        return found

    def _compare(self, batch: pa.RecordBatch, place: dict[str, int]) -> None:
        images = batch.column("image").to_pylist()
        self.images_before += images
        self.gone.add([image for image in images if image not in place])
        kept = np.array([image in place for image in images], bool)
        rows = np.array([place[image] for image in images if image in place], int)
        names = [self.table.images[row] for row in rows]
        self._compare_files(names, _where(batch.column("content").to_pylist(), kept))
        self._compare_splits(rows, names, _where(batch.column("split").to_pylist(), kept))
        self._compare_labels(rows, names, _where(batch.column("labels").to_pylist(), kept))

    def _compare_files(self, names: list[str], before: list[str]) -> None:
        now = contents(names, self.source, self.reading)
        self.files.add([name for name, was, is_ in zip(names, before, now, strict=True) if was != is_])

    def _compare_splits(self, rows: np.ndarray, names: list[str], before: list[str]) -> None:
        now = [self.table.splits[row] for row in rows]
        both = zip(names, before, now, strict=True)
        self.splits.add([f"{name} (was {was}, is {is_})" for name, was, is_ in both if was != is_])

    def _compare_labels(self, rows: np.ndarray, names: list[str], before: list[bytes]) -> None:
        """Of the categories that are in both."""
        were = np.frombuffer(b"".join(before), np.int8).reshape(len(names), len(self.categories))
        shared = [name for name in self.categories if name in self.table.categories]
        were = were[:, [self.categories.index(name) for name in shared]]
        are = coded(self.table, rows)[:, [self.table.categories.index(name) for name in shared]]
        places = np.argwhere(were != are)
        self.labels.add(
            [
                f"{names[row]} {shared[column]} (was {_meaning(were[row, column])}, "
                f"is {_meaning(are[row, column])})"
                for row, column in places[:MOST_NAMED]
            ]
        )
        self.labels.count += max(0, len(places) - MOST_NAMED)

    def _categories(self) -> Iterable[Found]:
        gone = Found("category is gone", "categories are gone")
        gone.add([name for name in self.categories if name not in self.table.categories])
        new = Found("category is new", "categories are new")
        new.add([name for name in self.table.categories if name not in self.categories])
        yield from (gone, new)
        if not gone.count and not new.count and tuple(self.categories) != tuple(self.table.categories):
            order = Found("other order of the categories", "")
            order.add([", ".join(self.table.categories)])
            yield order

    def _new(self) -> Found:
        before = set(self.images_before)
        new = Found("image is new", "images are new")
        new.add([image for image in self.table.images if image not in before])
        return new


def _where(values: list, chosen: np.ndarray) -> list:
    return [value for value, is_chosen in zip(values, chosen, strict=True) if is_chosen]


def _meaning(code: int) -> str:
    return MEANING.get(int(code), str(code))


def _reading(text: str) -> Reading:
    if text not in ("whole", "ends"):
        raise ValueError(f"reading={text}")
    return cast(Reading, text)
