"""A label table as rows of known entries, for formats that list labels image by image."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fewtags.errors import Problems
from fewtags.labels.table import ABSENT, COMPLETED, GIVEN, PRESENT, UNKNOWN, LabelTable

VALUES = {"present": PRESENT, "absent": ABSENT}
WORDS = {value: word for word, value in VALUES.items()}
LARGEST = 1e30


class Entry(NamedTuple):
    value: int
    source: str = GIVEN
    confidence: float = math.nan
    """How sure the source was; NaN if it did not say."""


Row = Mapping[str, Entry]
"""Category → what is known of it in one image; a category that is not in it is unknown."""


def rows_of(table: LabelTable) -> list[dict[str, Entry]]:
    """One row per image, categories in the table's order."""
    rows: list[dict[str, Entry]] = [{} for _ in table.images]
    for row, column in np.argwhere(table.known).tolist():
        rows[row][table.categories[column]] = _entry(table, row, column)
    return rows


def _entry(table: LabelTable, row: int, column: int) -> Entry:
    confidence = math.nan if table.confidence is None else float(table.confidence[row, column])
    if table.source is not None:
        source = str(table.source[row, column]) or GIVEN
    else:
        source = GIVEN if math.isnan(confidence) else COMPLETED
    return Entry(int(table.values[row, column]), source, confidence)


def table_of(
    images: Sequence[str], categories: Sequence[str], rows: Sequence[Row], splits: Sequence[str]
) -> LabelTable:
    """The inverse of `rows_of`: no confidence and no source where everything was given."""
    shape = (len(images), len(categories))
    values = np.full(shape, UNKNOWN, dtype=np.int8)
    confidence = np.full(shape, np.nan, dtype=np.float32)
    source = np.full(shape, "", dtype=object)
    column_of = {name: column for column, name in enumerate(categories)}
    for number, row in enumerate(rows):
        for name, entry in row.items():
            place = number, column_of[name]
            values[place], source[place], confidence[place] = entry.value, entry.source, entry.confidence
    if np.isin(source, ("", GIVEN)).all():
        return LabelTable(tuple(images), tuple(categories), values, tuple(splits))
    return LabelTable(tuple(images), tuple(categories), values, tuple(splits), confidence, source)


def count_unknown(
    found: Iterable[tuple[str | int, str]], names: Iterable[str | int], told: str, problems: Problems
) -> None:
    """`found`: (name, where) of every mention. One line for each name that is not among `names`.

    A whole file may use a wrong name: it is said once, with how often and where first.
    """
    known = set(names)
    first: dict[str | int, str] = {}
    counts: Counter[str | int] = Counter()
    for name, where in found:
        if name not in known:
            counts[name] += 1
            first.setdefault(name, where)
    for name, count in counts.items():
        times = "once" if count == 1 else f"{count} times"
        problems.add(f"{told.format(name=repr(name))} ({times}, first in {first[name]})")


def is_number(value: object) -> bool:
    """Whether it is a finite number of a size that a computer's numbers have; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
