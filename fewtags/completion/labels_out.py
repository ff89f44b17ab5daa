"""DIR/labels.csv: DATA's labels with holes filled, known ones untouched; and who filled which, how sure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from fewtags.completion.cells import edit_csv, edit_parquet
from fewtags.data import FORMATS
from fewtags.errors import UserError
from fewtags.labels.formats import coco, folder, open_images, provenance, tags, visual_genome, voc
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.table import COMPLETED, GIVEN, UNKNOWN, LabelTable

WRITERS: dict[str, Callable[[LabelTable, Path], None]] = {
    "voc2007": voc.write,
    "coco2014": lambda table, path: coco.write(table, path, 2014),
    "coco2017": lambda table, path: coco.write(table, path, 2017),
    "vg200": visual_genome.write,
    "openimages": open_images.write,
    "tags": tags.write,
}


def completed_table(
    table: LabelTable, categories: list[str], changed: np.ndarray, values: np.ndarray, confidence: np.ndarray
) -> LabelTable:
    """The table with `values` where `changed`, both (n, C) in the order of the model's categories.

    Filled entries have the source `completed` and the probability of what was decided as confidence.
    """
    column = {name: place for place, name in enumerate(table.categories)}
    labels = table.values.copy()
    source = _sources(table)
    sure = np.full(labels.shape, np.nan, np.float32) if table.confidence is None else table.confidence.copy()
    for place, name in enumerate(categories):
        rows = np.flatnonzero(changed[:, place])
        if len(rows):
            labels[rows, column[name]] = values[rows, place]
            filled = values[rows, place] != UNKNOWN
            source[rows, column[name]] = np.where(filled, COMPLETED, "")
            sure[rows, column[name]] = np.where(filled, confidence[rows, place], np.nan)
    return replace(table, values=labels, source=source, confidence=sure)


def _sources(table: LabelTable) -> np.ndarray:
    if table.source is not None:
        return table.source.copy()
    return np.where(table.values == UNKNOWN, "", GIVEN).astype(object)


def write_labels(spec: str, before: LabelTable, after: LabelTable, out: Path, tokens: str | None) -> list[str]:
    """Write `after` in the form that DATA has; returns sentences about what was written."""
    kind = spec.partition(":")[0]
    if kind == "scenes" or kind in FORMATS:
        folder.write(after, out, form="csv")
        return _write_format(kind, after, out) if kind in WRITERS else []
    source = folder.label_file(Path(spec))
    target = out / (folder.CSV_NAME if source.suffix == ".csv" else folder.PARQUET_NAME)
    provenance.write(after, target)
    edit = edit_csv if source.suffix == ".csv" else edit_parquet
    edit(source, target, changes(before, after, Tokens.parse(tokens)))
    return []


def changes(before: LabelTable, after: LabelTable, tokens: Tokens) -> dict[str, dict[int, str]]:
    """category → row → the token to write, for every entry that differs."""
    found = {}
    for column, name in enumerate(before.categories):
        rows = np.flatnonzero(before.values[:, column] != after.values[:, column])
        if len(rows):
            found[name] = {int(row): tokens.written[int(after.values[row, column])] for row in rows}
    return found


def _write_format(kind: str, after: LabelTable, out: Path) -> list[str]:
    """The data set's own format too, below DIR, if it can say what is known and what is not."""
    place = out / kind
    try:
        place.mkdir(parents=True, exist_ok=True)
        WRITERS[kind](after, place)
    except UserError as problem:
        if not any(place.iterdir()):
            place.rmdir()
        return [f"Only labels.csv was written, not {kind}: {problem}"]
    return [f"The labels are in {place} too, as {kind} writes them."]
