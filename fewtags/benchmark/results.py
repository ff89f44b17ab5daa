"""results.csv: one row per finished cell of a sweep. It holds the figures, and it is what a sweep resumes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fewtags.errors import UserError
from fewtags.files import write_text

FILE = "results.csv"
KEY = ("data", "method", "known", "seed")
METRICS = (
    *("mAP", "mAP_voc", "OP", "OR", "OF1", "CP", "CR", "CF1"),
    *("OP_top3", "OR_top3", "OF1_top3", "CP_top3", "CR_top3", "CF1_top3"),
)
"""In percent, over the test split."""
RUN = ("images", "test_images", "epochs", "backbone")
COST = ("training_seconds", "seconds", "peak_memory_gib")
PSEUDO_LABELS = (
    *("intra_made", "intra_right", "cross_made", "cross_right", "own_made", "own_right"),
    *("hidden_present", "reachable"),
)
"""Counts of the last epoch; empty where a method makes none. A method with other modules adds its own columns."""
ORIGIN = ("recipe_hash", "version")
COLUMNS = (*KEY, *METRICS, *RUN, *COST, *PSEUDO_LABELS, *ORIGIN)

DIGITS = 4


def read_results(path: str | Path) -> pd.DataFrame:
    """The rows of a sweep's folder or of a results.csv, with at least `COLUMNS`; no file, no rows."""
    file = Path(path) / FILE if Path(path).is_dir() or not Path(path).suffix else Path(path)
    if not file.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    try:
        table = pd.read_csv(file, dtype={"data": str, "method": str, "recipe_hash": str, "version": str})
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, ValueError) as problem:
        raise UserError(f"{file}: not readable as a table of results: {problem}") from problem
    missing = [name for name in KEY if name not in table]
    if missing:
        raise UserError(f"{file}: no column {missing[0]!r}; is it a results.csv of `fewtags benchmark`?")
    return table.reindex(columns=columns_of(table.columns))


def write_results(folder: Path, rows: pd.DataFrame, method_order: Iterable[str]) -> None:
    """All rows, whole: sorted by data, method (in the order given, then by name), known, seed."""
    order = {name: place for place, name in enumerate(method_order)}
    place = rows["method"].map(lambda name: (order.get(name, len(order)), name))
    ordered = rows.assign(place=place).sort_values(["data", "place", "known", "seed"]).drop(columns="place")
    ordered = ordered.reindex(columns=columns_of(rows.columns))
    for name in columns_of(rows.columns):
        if name not in (*KEY, *METRICS, *RUN, *COST, *ORIGIN):  # counts: 12, not 12.0, also beside empty ones
            ordered[name] = ordered[name].astype(float).convert_dtypes()
    write_text(folder / FILE, ordered.to_csv(index=False, lineterminator="\n"))


def columns_of(present: Iterable[str]) -> list[str]:
    """`COLUMNS`, with the columns of further pseudo-label modules before the recipe's hash."""
    further = sorted(set(present) - set(COLUMNS))
    return [*COLUMNS[: -len(ORIGIN)], *further, *ORIGIN]


def with_row(rows: pd.DataFrame, row: Mapping[str, Any]) -> pd.DataFrame:
    """`rows` with this one added, in place of an older one of the same cell."""
    kept = rows[~same_cell(rows, row)]
    added = pd.DataFrame([dict(row)])
    return added if kept.empty else pd.concat([kept, added], ignore_index=True)


def same_cell(rows: pd.DataFrame, cell: Mapping[str, Any]) -> pd.Series:
    """(rows,) bool: which of them are of this data, method, known and seed."""
    same = pd.Series(True, index=rows.index)
    for name in KEY:
        same &= rows[name] == cell[name]
    return same


def row_of(data: str, metrics: Mapping[str, Any], recipe_hash: str, version: str) -> dict[str, Any]:
    """A run's metrics.json as a row. `recipe_hash` is that of the recipe without paths of this machine."""
    kept = (*KEY[1:], *METRICS, *RUN, *COST)
    row = {"data": data, **{name: _rounded(metrics.get(name)) for name in kept}}
    pseudo = {name: _whole(value) for name, value in metrics.get("pseudo_labels", {}).items()}
    return row | pseudo | {"recipe_hash": recipe_hash, "version": version}


def _rounded(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _whole(value: float) -> float | int:
    """Counts are logged as floats."""
    return int(value) if float(value).is_integer() else round(value, DIGITS)
