"""Who set the completed entries of a folder, and how sure they were: `labels.meta.parquet`.

One row per entry that was not given by a person: image, category, value, confidence, source. An entry whose
value no longer matches the labels was edited by hand since, and so counts as given.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fewtags.errors import Problems, UserError
from fewtags.files import whole_file
from fewtags.labels.formats.loaded import first_line
from fewtags.labels.table import GIVEN, UNKNOWN, LabelTable

COLUMNS = ("image", "category", "value", "confidence", "source")


def meta_file(labels: Path) -> Path:
    return labels.with_name(f"{labels.stem}.meta.parquet")


def write(table: LabelTable, labels: Path) -> None:
    """Nothing completed: no file, and none left over from before."""
    entries = _entries(table)
    if entries.empty:
        meta_file(labels).unlink(missing_ok=True)
        return
    with whole_file(meta_file(labels)) as draft:
        entries.to_parquet(draft, index=False)


def _entries(table: LabelTable) -> pd.DataFrame:
    rows, columns = np.nonzero(_completed(table))
    confidence = np.full(len(rows), np.nan, np.float32)
    if table.confidence is not None:
        confidence = table.confidence[rows, columns].astype(np.float32)
    source = np.full(len(rows), "completed", dtype=object)
    if table.source is not None:
        source = table.source[rows, columns].astype(object)
    images = np.array(table.images, dtype=object)[rows]
    categories = np.array(table.categories, dtype=object)[columns]
    values = table.values[rows, columns]
    return pd.DataFrame(dict(zip(COLUMNS, (images, categories, values, confidence, source), strict=True)))


def _completed(table: LabelTable) -> np.ndarray:
    """(n, C) bool: known entries that say they were not given."""
    if table.source is not None:
        return table.known & (table.source != GIVEN) & (table.source != "")
    if table.confidence is not None:
        return table.known & ~np.isnan(table.confidence)
    return np.zeros(table.values.shape, dtype=bool)


def read(table: LabelTable, labels: Path, strict: bool = True) -> LabelTable:
    """The table with confidence and source, if there are any beside the label file.

    `strict`: an entry of an image or a category that is not in the table is an error; other tools leave some out.
    """
    file = meta_file(labels)
    if not file.is_file():
        return table
    entries = _read_entries(file)
    rows = pd.Index(table.images).get_indexer(pd.Index(entries["image"]))
    columns = pd.Index(table.categories).get_indexer(pd.Index(entries["category"]))
    if strict:
        _check_found(file, entries, rows, columns)
    found = (rows >= 0) & (columns >= 0)
    stands = found & (table.values[rows, columns] == entries["value"].to_numpy())
    confidence = np.full(table.values.shape, np.nan, dtype=np.float32)
    given = np.where(table.values == UNKNOWN, "", GIVEN).astype(object)
    source = given if table.source is None else table.source.copy()
    source[rows[found], columns[found]] = given[rows[found], columns[found]]
    confidence[rows[stands], columns[stands]] = entries["confidence"].to_numpy()[stands]
    source[rows[stands], columns[stands]] = entries["source"].to_numpy()[stands]
    return replace(table, confidence=confidence, source=source)


def _read_entries(file: Path) -> pd.DataFrame:
    try:
        entries = pq.read_table(file).to_pandas()
    except (pa.ArrowException, OSError, ValueError, OverflowError) as problem:
        raise UserError(f"{file}: not readable as Parquet ({first_line(problem)})") from problem
    if missing := [name for name in COLUMNS if name not in entries]:
        raise UserError(f"{file}: no column {', '.join(missing)}")
    for name in ("image", "category", "source"):
        if not all(isinstance(cell, str) for cell in entries[name]):
            raise UserError(f"{file}: column {name!r} holds something that is no text")
    for name in ("value", "confidence"):
        if not pd.api.types.is_numeric_dtype(entries[name]):
            raise UserError(f"{file}: column {name!r} holds something that is no number")
    return entries


def _check_found(file: Path, entries: pd.DataFrame, rows: np.ndarray, columns: np.ndarray) -> None:
    problems = Problems(str(file))
    for name, places in (("image", rows), ("category", columns)):
        for row in np.flatnonzero(places < 0):
            problems.add(f"row {row + 1}, column {name!r}: {entries[name].iloc[row]!r} is not in the label file")
    problems.raise_if_any()
