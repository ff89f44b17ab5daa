"""The format for own data: a folder with `labels.csv` (or `labels.parquet`) and the images beside it.

    image,split,dog,car
    photos/1.jpg,train,1,
    photos/2.jpg,test,0,1

One row per image, one column per category; `split` is optional. What completed an entry, and how sure it was,
is kept in `labels.meta.parquet` beside it: see `provenance.py`.
"""

from __future__ import annotations

import csv
import io
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fewtags.errors import Problems, UserError
from fewtags.files import whole_file, write_text
from fewtags.labels.formats import provenance
from fewtags.labels.formats.loaded import Loaded, missing_rows
from fewtags.labels.formats.sheet import Sheet, read_sheet
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.split import TEST, TRAIN, seeded_split
from fewtags.labels.table import LabelTable

IMAGE, SPLIT = "image", "split"
CSV_NAME, PARQUET_NAME = "labels.csv", "labels.parquet"
NO_MEANING = 2
DEFAULT_TOKENS = Tokens()


def read(
    path: str | Path, tokens: Tokens | None = None, seed: int = 0, image_root: str | Path | None = None
) -> Loaded:
    """A folder, or its label file. Everything that is wrong is told at once.

    `image_root`: where image paths start from, if not beside the label file.
    """
    file = label_file(Path(path))
    root = file.parent if image_root is None else Path(image_root)
    sheet = read_sheet(file)
    categories = _categories(sheet)
    values = _values(sheet, categories, tokens or DEFAULT_TOKENS, problems := Problems(str(file)))
    images = tuple(sheet.column(IMAGE))
    _check_images(sheet, images, root, problems)
    splits, notes = _splits(sheet, seed, problems)
    problems.raise_if_any()
    table = LabelTable(images, categories, values, splits)
    return Loaded(provenance.read(table, file), root, notes)


def write(
    table: LabelTable,
    folder: str | Path,
    tokens: Tokens | None = None,
    form: Literal["csv", "parquet"] | None = None,
) -> Path:
    """Write labels (and provenance, if the table has any) into `folder`; returns the label file.

    `form` None: what the folder has already, else CSV.
    """
    if clash := {IMAGE, SPLIT} & set(table.categories):
        raise UserError(f"a category cannot be called {clash.pop()!r}: it is a column of the label file")
    file = _target(Path(folder), form)
    # Provenance first: where its value does not match the labels yet, an entry is read as given: harmless.
    provenance.write(table, file)
    columns = label_columns(table, tokens or DEFAULT_TOKENS)
    if file.suffix == ".csv":
        write_text(file, csv_text(columns))
    else:
        with whole_file(file) as draft:
            pq.write_table(pa.table({name: pa.array(cells, pa.string()) for name, cells in columns}), draft)
    return file


def _target(folder: Path, form: Literal["csv", "parquet"] | None) -> Path:
    has_parquet = (folder / PARQUET_NAME).is_file()
    file = folder / (PARQUET_NAME if form == "parquet" or (form is None and has_parquet) else CSV_NAME)
    other = folder / (CSV_NAME if file.name == PARQUET_NAME else PARQUET_NAME)
    if other.is_file():
        raise UserError(f"{other} is there already; remove it before writing {file.name} beside it")
    return file


def label_file(path: Path) -> Path:
    if path.suffix in (".csv", ".parquet") and path.is_file():
        return path
    if not path.is_dir():
        raise UserError(f"{path}: there is no such folder")
    found = [path / name for name in (CSV_NAME, PARQUET_NAME) if (path / name).is_file()]
    if len(found) == 2:
        raise UserError(f"{path}: has both {CSV_NAME} and {PARQUET_NAME}; keep one")
    if not found:
        raise UserError(
            f"{path}: has no {CSV_NAME} (nor {PARQUET_NAME}). "
            f"`fewtags new {path}` writes one to fill in for a folder of images"
        )
    return found[0]


def _categories(sheet: Sheet) -> tuple[str, ...]:
    problems = Problems(str(sheet.file))
    header_place = "line 1, " if sheet.place_word == "line" else ""
    for number, name in enumerate(sheet.header, start=1):
        if not name:
            problems.add(f"{header_place}column {number}: the column has no name")
        elif name in sheet.header[: number - 1]:
            first = sheet.header.index(name) + 1
            problems.add(f"{header_place}column {number}: {name!r} is already the name of column {first}")
    if IMAGE not in sheet.header:
        problems.add(f"{header_place}no column {IMAGE!r}; the header is {_shown_header(sheet)}")
    categories = tuple(name for name in sheet.header if name not in (IMAGE, SPLIT))
    if not categories:
        problems.add(f"{header_place}no category: write one column for each after {IMAGE!r}")
    if not sheet.places:
        problems.add("no image: there is no row below the header")
    problems.raise_if_any()
    return categories


def _shown_header(sheet: Sheet) -> str:
    shown = ", ".join(sheet.header)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    separated = len(sheet.header) == 1 and any(mark in shown for mark in ";\t")
    return shown + (" (separate the columns with commas)" if separated else "")


def _values(sheet: Sheet, categories: Sequence[str], tokens: Tokens, problems: Problems) -> np.ndarray:
    """(n, C) int8. A cell is looked up as it stands, then without the blanks around it."""
    meaning = tokens.meaning
    values = np.empty((len(sheet.places), len(categories)), dtype=np.int8)
    for number, category in enumerate(categories):
        cells = sheet.column(category)
        codes = [meaning.get(cell, NO_MEANING) for cell in cells]
        for row in [row for row, code in enumerate(codes) if code == NO_MEANING]:
            codes[row] = meaning.get(cells[row].strip(), NO_MEANING)
        values[:, number] = codes
    for row, number in np.argwhere(values == NO_MEANING):
        cell = sheet.column(categories[number])[row]
        problems.add(
            f"{sheet.place(row)}, column {categories[number]!r}: {cell!r} has no meaning (--tokens {tokens})"
        )
    return values


def _check_images(sheet: Sheet, images: Sequence[str], root: Path, problems: Problems) -> None:
    first_row: dict[str, int] = {}
    inside = []
    for row, image in enumerate(images):
        where = f"{sheet.place(row)}, column {IMAGE!r}"
        name = posixpath.normpath(image) if image else ""
        if not name:
            problems.add(f"{where}: is blank")
        elif name.startswith(("/", "../")) or name == ".." or Path(name).is_absolute():
            problems.add(f"{where}: {image} is outside the folder; write a path relative to {root}")
        elif name in first_row:
            problems.add(f"{where}: {image} is already on {sheet.place(first_row[name])}")
        else:
            first_row[name] = row
            inside.append((row, name))
    for number in missing_rows(root, [name for _, name in inside]):
        row, name = inside[number]
        problems.add(f"{sheet.place(row)}, column {IMAGE!r}: there is no file {root / name}")


def _splits(sheet: Sheet, seed: int, problems: Problems) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if SPLIT not in sheet.header:
        note = f"{sheet.file.name} has no column {SPLIT!r}: a seeded 80/20 split (seed {seed})"
        return seeded_split(len(sheet.places), seed), (note,)
    splits = tuple(cell.strip() for cell in sheet.column(SPLIT))
    for row, split in enumerate(splits):
        if split not in (TRAIN, TEST):
            problems.add(f"{sheet.place(row)}, column {SPLIT!r}: {split!r} is neither {TRAIN} nor {TEST}")
    return splits, ()


def label_columns(table: LabelTable, tokens: Tokens = DEFAULT_TOKENS) -> list[tuple[str, Sequence[str]]]:
    cells = np.array([tokens.written[value] for value in (-1, 0, 1)], dtype=object)[table.values.T + 1]
    named = [(name, list(column)) for name, column in zip(table.categories, cells, strict=True)]
    return [(IMAGE, table.images), (SPLIT, table.splits), *named]


def csv_text(columns: Sequence[tuple[str, Sequence[str]]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name for name, _ in columns])
    writer.writerows(zip(*(cells for _, cells in columns), strict=True))
    return text.getvalue()
