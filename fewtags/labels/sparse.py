"""Labels of very many images, of which few are known: 3 bytes for each known one, nothing for the others.

`SparseLabels` is read by rows like an array: `labels[rows]` gives a dense (B, C) of -1, 0, +1. What training needs
beyond batches (hiding, holding out, counting pairs) works on it without ever making the dense table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from fewtags.labels.table import ABSENT, PRESENT, LabelTable

ROWS_AT_ONCE = 16384
"""Rows that are looked at together in a pass over all: a multiple of 4, as random bytes are drawn by fours."""
MOST_CATEGORIES = 65536


@dataclass(frozen=True)
class SparseLabels:
    """(images, categories) of -1, 0, +1 by rows: row i has entries starts[i] .. starts[i + 1] - 1."""

    starts: np.ndarray
    """(images + 1,) int64."""
    category: np.ndarray
    """(entries,) uint16, rising within a row."""
    value: np.ndarray
    """(entries,) int8 of -1, +1."""
    categories: int
    dtype = np.dtype(np.int8)
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.categories

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Rows as an array of row numbers, a slice, or one row → dense int8."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        chosen = np.atleast_1d(np.asarray(rows))
        dense = np.zeros((len(chosen), self.categories), np.int8)
        entries, counts = self._entries(chosen)
        dense[np.repeat(np.arange(len(chosen)), counts), self.category[entries]] = self.value[entries]
        return dense if np.ndim(rows) else dense[0]

    def take(self, rows: np.ndarray) -> SparseLabels:
        """These rows in this order, still sparse."""
        entries, counts = self._entries(np.asarray(rows))
        starts = np.concatenate([[0], np.cumsum(counts)])
        return replace(self, starts=starts, category=self.category[entries], value=self.value[entries])

    def kept(self, chosen: np.ndarray) -> SparseLabels:
        """Of all entries (entries,) bool the chosen ones; the others are unknown."""
        before = np.concatenate([[0], np.cumsum(chosen, dtype=np.int64)])
        parts = self.category[chosen], self.value[chosen]
        return SparseLabels(before[self.starts], *parts, self.categories)

    def blocks(self) -> Iterator[tuple[range, slice]]:
        """Runs of rows, and where their entries are."""
        for first in range(0, len(self), ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, len(self))
            yield range(first, last), slice(int(self.starts[first]), int(self.starts[last]))

    def row_of_entries(self, rows: range) -> np.ndarray:
        """Of each entry of these rows, its row counted from the first of them."""
        return np.repeat(np.arange(len(rows)), np.diff(self.starts[rows.start : rows.stop + 1]))

    def count(self, value: int) -> int:
        return int((self.value == value).sum())

    def count_by_category(self, value: int) -> np.ndarray:
        """(C,) how often each category has this value."""
        return np.bincount(self.category[self.value == value], minlength=self.categories)

    def _entries(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of the entries of these rows, and how many each row has."""
        rows = np.where(rows < 0, rows + len(self), rows)
        counts = self.starts[rows + 1] - self.starts[rows]
        skipped = self.starts[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]])
        return np.arange(counts.sum()) + np.repeat(skipped, counts), counts


def sparse_labels(values: np.ndarray) -> SparseLabels:
    """(n, C) int8 → the same, sparse."""
    row, category = np.nonzero(values)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(values)))])
    return SparseLabels(starts, category.astype(np.uint16), values[row, category], values.shape[1])


def labels_from_entries(
    row: np.ndarray, category: np.ndarray, value: np.ndarray, shape: tuple[int, int]
) -> SparseLabels:
    """Entries in any order, each once → labels of this shape."""
    order = np.lexsort((category, row))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
    return SparseLabels(starts, category[order].astype(np.uint16), value[order].astype(np.int8), shape[1])


def pair_totals(labels: SparseLabels) -> tuple[np.ndarray, np.ndarray]:
    """→ (C, C) float64 each: images with i and j known present; with i known present and j known."""
    size = labels.categories
    both, beside = np.zeros((size, size)), np.zeros((size, size))
    for rows, place in labels.blocks():
        starts = labels.starts[rows.start : rows.stop + 1] - place.start
        ones = np.ones(place.stop - place.start, np.int32)
        known = csr_array((ones, labels.category[place].astype(np.int32), starts), shape=(len(rows), size))
        present = known.copy()
        present.data = (labels.value[place] == PRESENT).astype(np.int32)
        present.eliminate_zeros()
        both += (present.T @ present).toarray()
        beside += (present.T @ known).toarray()
    return both, beside


class PackedBits:
    """(n, C) of 0, 1 in an eighth of the space, read by rows like an array."""

    def __init__(self, bits: np.ndarray, columns: int):
        self.bits, self.shape = bits, (len(bits), columns)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return np.unpackbits(self.bits[rows], axis=-1, count=self.shape[1]).view(np.int8)


class SparseTable(LabelTable):
    """A label table whose `values` are `SparseLabels`. Training reads it; other commands want a dense one."""

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.images), len(self.categories)) or len(self.splits) != len(self.images):
            raise ValueError(f"values {self.values.shape}, {len(self.images)} images, {len(self.splits)} splits")

    @property
    def labels(self) -> SparseLabels:
        return self.values  # type: ignore[return-value]

    def rows(self, indices: np.ndarray) -> SparseTable:
        chosen = np.asarray(indices)
        images, splits = (tuple(names[i] for i in chosen) for names in (self.images, self.splits))
        return SparseTable(images, self.categories, self.labels.take(chosen), splits)  # type: ignore[arg-type]

    def with_values(self, values: Any) -> SparseTable:
        return replace(self, values=values)

    def dense(self) -> LabelTable:
        return LabelTable(self.images, self.categories, self.labels[:], self.splits)


def sparse_table(table: LabelTable) -> SparseTable:
    """The same labels, sparse; who gave them is not kept."""
    values: Any = sparse_labels(table.values)
    return SparseTable(table.images, table.categories, values, table.splits)


def value_count(values: Any, value: int) -> int:
    """How many entries of a dense or sparse (n, C) have this value."""
    if not isinstance(values, SparseLabels):
        return int((values == value).sum())
    known = values.count(PRESENT), values.count(ABSENT)
    return {PRESENT: known[0], ABSENT: known[1]}.get(value, len(values) * values.categories - sum(known))


def known_count(values: Any) -> int:
    return value_count(values, PRESENT) + value_count(values, ABSENT)


def value_count_by_category(values: Any, value: int) -> np.ndarray:
    """(C,): the same for each category; of sparse labels, present or absent ones alone."""
    return values.count_by_category(value) if isinstance(values, SparseLabels) else (values == value).sum(0)
