"""Editing single cells of a label file and leaving every other byte of it as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fewtags.errors import UserError
from fewtags.files import whole_file, write_bytes

BYTE_ORDER_MARK = "\ufeff"
CELL = re.compile(r'("(?:[^"]|"")*"|[^,\r\n]*)(,|\r\n|\r|\n|\Z)')

Changes = Mapping[str, Mapping[int, str]]
"""column → row (from 0, below the header) → the new cell."""


def edit_csv(source: Path, target: Path, changes: Changes) -> None:
    """The same file with these cells replaced: order, quoting, line ends, blank lines and the rest stay."""
    text = source.read_bytes().decode("utf-8")
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    write_bytes(target, (mark + edited(text[len(mark) :], changes)).encode("utf-8"))


def edited(text: str, changes: Changes) -> str:
    header, *rows = spans(text)
    names = [_content(text[start:end]).strip() for start, end in header]
    wanted = {names.index(name): cells for name, cells in changes.items()}
    places = sorted((rows[row][column], cell) for column, cells in wanted.items() for row, cell in cells.items())
    pieces, done = [], 0
    for (start, end), cell in places:
        pieces += [text[done:start], _written(cell, quoted=text[start:end].startswith('"'))]
        done = end
    return "".join([*pieces, text[done:]])


def spans(text: str) -> list[list[tuple[int, int]]]:
    """Per row that is not blank, the (start, end) of each cell, quotes included."""
    rows: list[list[tuple[int, int]]] = []
    row: list[tuple[int, int]] = []
    for cell in CELL.finditer(text):
        row.append(cell.span(1))
        if cell[2] != ",":
            if len(row) > 1 or cell[1]:
                rows.append(row)
            row = []
    return rows


def _content(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def _written(cell: str, quoted: bool) -> str:
    if quoted or any(mark in cell for mark in ',"\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def edit_parquet(source: Path, target: Path, changes: Changes) -> None:
    """The same table with these cells replaced, each column keeping its type."""
    table = pq.read_table(source)
    for name, cells in changes.items():
        place = table.column_names.index(name)
        column = table.column(place).to_pylist()
        for row, cell in cells.items():
            column[row] = _typed(cell, table.schema.field(place), source)
        table = table.set_column(
            place, table.schema.field(place), pa.array(column, table.schema.field(place).type)
        )
    with whole_file(target) as draft:
        pq.write_table(table, draft)


def _typed(cell: str, field: pa.Field, source: Path) -> object:
    """A token as a value of the column's type; a blank one is null where the type is not text."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return cell
    if not cell:
        return None
    try:
        return pa.scalar(cell).cast(kind).as_py()
    except pa.ArrowInvalid as problem:
        raise UserError(f"{source}: column {field.name!r} of type {kind} cannot hold {cell!r}") from problem
