"""Answers back into a label table, with source `human`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from fewtags.data import Data
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.images.loading import FolderImages
from fewtags.labels.formats import folder, provenance
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.table import ABSENT, GIVEN, HUMAN, PRESENT, UNKNOWN, LabelTable
from fewtags.recipe import Recipe
from fewtags.review.queue import NO, YES

MEANING = {YES: PRESENT, NO: ABSENT}
"""A skipped entry stays as it was."""


def known_table(table: LabelTable, recipe: Recipe) -> LabelTable:
    """The table with what the run did not know hidden again: `--known` of an experiment."""
    from fewtags.training.prepare import limited

    if recipe.known == 1:
        return table
    from fewtags.labels.hide import hide

    given = limited(table.split("train"), recipe.limit)
    places = {image: row for row, image in enumerate(table.images)}
    rows = [places[image] for image in given.images]
    values = table.values.copy()
    values[rows] = hide(given.values, recipe.known, recipe.seed)
    return table.with_values(values)


def with_answers(table: LabelTable, answers: Iterable[tuple[str, str, int]]) -> LabelTable:
    """(image, category, state) of each answer → the table with them filled in. Given labels are never changed."""
    rows = {image: row for row, image in enumerate(table.images)}
    columns = {category: column for column, category in enumerate(table.categories)}
    values = table.values.copy()
    source = _sources(table)
    confidence = None if table.confidence is None else table.confidence.copy()
    for image, category, state in answers:
        if state not in MEANING or image not in rows or category not in columns:
            continue
        place = rows[image], columns[category]
        if source[place] == GIVEN:
            continue
        values[place], source[place] = MEANING[state], HUMAN
        if confidence is not None:
            confidence[place] = np.nan
    return replace(table, values=values, source=source, confidence=confidence)


def _sources(table: LabelTable) -> np.ndarray:
    if table.source is not None:
        return table.source.copy()
    return np.where(table.values == UNKNOWN, "", GIVEN).astype(object)


def write_labels(table: LabelTable, file: Path, tokens: str | None = None) -> Path:
    """The label file, and who set what beside it (FILE.meta.parquet)."""
    if file.suffix.lower() != ".csv":
        raise UserError(f"--export {file}: write a .csv")
    provenance.write(table, file)
    write_text(file, folder.csv_text(folder.label_columns(table, Tokens.parse(tokens))))
    return file


def how_to_train(data: Data, file: Path) -> str:
    """Where the file has to be for `fewtags train` to find the images."""
    if not isinstance(data.images, FolderImages):
        return f"its images are made on the fly: `fewtags convert {data.name} DIR` writes them, put the file there"
    root = data.images.root
    if file.resolve().parent == root.resolve():
        return f"fewtags train {file}"
    return f"put it into {root}, beside the images, then: fewtags train {root / file.name}"
