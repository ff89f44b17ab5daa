"""Answers back into a label table, with source `human`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from fewtags.data import Data
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.images.loading import FolderImages
from fewtags.labels.formats import folder, provenance
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.table import ABSENT, COMPLETED, GIVEN, HUMAN, PRESENT, UNKNOWN, LabelTable
from fewtags.recipe import Recipe
from fewtags.review.queue import NO, STATES, YES

ANSWER = "answer"
MEANING = {YES: PRESENT, NO: ABSENT}
"""A skipped entry stays as it was."""


def known_table(table: LabelTable, recipe: Recipe) -> LabelTable:
    """The table of the run's own DATA with what the run did not know hidden again: `--known` of an experiment."""
    if recipe.known == 1:
        return table
    from fewtags.labels.hide import hide
    from fewtags.training.prepare import limited

    given = limited(table.split("train"), recipe.limit, recipe.development)
    places = {image: row for row, image in enumerate(table.images)}
    rows = [places[image] for image in given.images]
    values = table.values.copy()
    values[rows] = hide(given.values, recipe.known, recipe.seed)
    return table.with_values(values)


def with_completed(table: LabelTable, labels: Path) -> LabelTable:
    """The table with what `fewtags complete` filled in, which it noted beside the `labels` that it wrote."""
    file = provenance.meta_file(labels)
    if not file.is_file():
        return table
    entries = pd.read_parquet(file)
    rows = pd.Index(table.images).get_indexer(pd.Index(entries["image"]))
    columns = pd.Index(table.categories).get_indexer(pd.Index(entries["category"]))
    values, source = table.values.copy(), _sources(table)
    confidence = np.full(values.shape, np.nan, np.float32) if table.confidence is None else table.confidence.copy()
    filled = (rows >= 0) & (columns >= 0) & (entries["source"] == COMPLETED).to_numpy()
    filled &= source[rows, columns] != GIVEN
    place = rows[filled], columns[filled]
    values[place], confidence[place] = entries["value"][filled], entries["confidence"][filled]
    source[place] = COMPLETED
    return replace(table, values=values, source=source, confidence=confidence)


def with_answers(table: LabelTable, answers: Iterable[tuple[str, str, int]]) -> LabelTable:
    """(image, category, state) of each answer → the table with them filled in. Given labels are never changed."""
    rows = {image: row for row, image in enumerate(table.images)}
    columns = {category: column for column, category in enumerate(table.categories)}
    values, source = table.values.copy(), _sources(table)
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


def fill_audit(suggestions: Path, answers: Iterable[tuple[str, str, int]]) -> bool:
    """If the suggestions are the sample of `fewtags complete --audit`, write the answers into it too."""
    if suggestions.suffix.lower() != ".csv":
        return False
    sample = pd.read_csv(suggestions, dtype=str, keep_default_na=False)
    if ANSWER not in sample:
        return False
    said = {(image, category): STATES[state] for image, category, state in answers if state in MEANING}
    pairs = zip(sample["image"], sample["category"], strict=True)
    sample[ANSWER] = [said.get(pair, before) for pair, before in zip(pairs, sample[ANSWER], strict=True)]
    write_text(suggestions, sample.to_csv(index=False))
    return True


def how_to_train(data: Data, file: Path, tokens: str | None = None) -> str:
    """Where the file has to be for `fewtags train` to find the images."""
    if not isinstance(data.images, FolderImages):
        return f"its images are made on the fly: `fewtags convert {data.name} DIR` writes them, put the file there"
    root, flag = data.images.root, "" if tokens is None else f" --tokens {shlex.quote(tokens)}"
    if file.resolve().parent == root.resolve():
        return f"fewtags train {file}{flag}"
    return (
        f"put it and {provenance.meta_file(file).name} into {root}, then: fewtags train {root / file.name}{flag}"
    )
