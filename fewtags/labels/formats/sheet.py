"""A CSV or Parquet file as columns of text, each row with its place in the file; nothing understood yet."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fewtags.errors import Problems, UserError
from fewtags.labels.formats.loaded import first_line, read_text


@dataclass(frozen=True)
class Sheet:
    file: Path
    header: list[str]
    columns: list[list[str]]
    """One list of cells per column of the header."""
    places: list[int]
    """Per row the line of the file (CSV) or the row number from 1 (Parquet)."""
    place_word: str

    def column(self, name: str) -> list[str]:
        return self.columns[self.header.index(name)]

    def place(self, row: int) -> str:
        return f"{self.place_word} {self.places[row]}"


def read_sheet(path: Path) -> Sheet:
    return read_parquet(path) if path.suffix == ".parquet" else read_csv(path)


def read_csv(path: Path) -> Sheet:
    lines = _csv_rows(path, read_text(path))
    header = [name.strip() for name in lines[0][1]]
    problems = Problems(str(path))
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            problems.add(f"line {line}: {len(cells)} columns, the header has {len(header)}")
    problems.raise_if_any()
    columns = [list(column) for column in zip(*(cells for _, cells in lines[1:]), strict=True)]
    columns = columns or [[] for _ in header]
    return Sheet(path, header, columns, [line for line, _ in lines[1:]], "line")


def _csv_rows(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """(line it starts on, cells) of every row that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, line = [], 1
    try:
        for cells in reader:
            if cells:
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as problem:
        raise UserError(f"{path}: line {line}: not readable as CSV ({problem})") from problem
    return rows


def read_parquet(path: Path) -> Sheet:
    try:
        table = pq.read_table(path)
        columns = [_cells(column) for column in table.columns]
    except FileNotFoundError as problem:
        raise UserError(f"{path}: there is no such file") from problem
    except (pa.ArrowException, OSError, ValueError, OverflowError) as problem:  # the last two: of a date
        raise UserError(f"{path}: not readable as Parquet ({first_line(problem)})") from problem
    return Sheet(path, list(table.column_names), columns, list(range(1, table.num_rows + 1)), "row")


def _cells(column: pa.ChunkedArray) -> list[str]:
    """Cells as the text a CSV would hold: null and NaN are blank, and 1.0 is 1, because a column of whole
    numbers becomes floats as soon as one is missing."""
    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = pc.dictionary_encode(encoded, null_encoding="mask")
    texts = [_text(value) for value in encoded.dictionary.to_pylist()]
    return ["" if place is None else texts[place] for place in encoded.indices.to_pylist()]


def _text(value: object) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
