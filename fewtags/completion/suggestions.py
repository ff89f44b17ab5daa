"""suggestions.parquet: one row per unknown entry, with its probability, the decision and the reasons.

| column | meaning |
|---|---|
| image, category | the entry |
| probability | calibrated P(present) |
| decision | present, absent or unknown (left to a person) |
| origin | what decided: model, intra, cross, intra+cross, none |
| score | the classifier's own sigmoid |
| intra | calibrated likelihood from labels known in the image; null: no known present label to rest on |
| intra_because | JSON `[{"category": "keyboard", "p": 0.93}, …]`, strongest first |
| cross | likeness to the category's known images (or similarity to its prototypes); null: it has none |
| cross_because | JSON `[{"image": "images/000123.jpg", "similarity": 0.81}, …]`, at most three |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from fewtags.errors import UserError
from fewtags.files import whole_file

PRESENT, ABSENT, UNKNOWN = "present", "absent", "unknown"
DECISIONS = (PRESENT, ABSENT, UNKNOWN)
ORIGINS = ("model", "intra", "cross", "intra+cross", "none")
SCHEMA = pa.schema(
    [
        pa.field("image", pa.string(), nullable=False),
        pa.field("category", pa.string(), nullable=False),
        pa.field("probability", pa.float32(), nullable=False),
        pa.field("decision", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("score", pa.float32(), nullable=False),
        pa.field("intra", pa.float32()),
        pa.field("intra_because", pa.string(), nullable=False),
        pa.field("cross", pa.float32()),
        pa.field("cross_because", pa.string(), nullable=False),
    ]
)


def write_suggestions(tables: pa.Table | Iterable[pa.Table], path: str | Path) -> None:
    """One table, or the parts of a long one, to .parquet or .csv by the file's ending; whole or not at all."""
    path = Path(path)
    parts = [tables] if isinstance(tables, pa.Table) else tables
    writer = pacsv.CSVWriter if path.suffix.lower() == ".csv" else pq.ParquetWriter
    with whole_file(path) as draft, writer(draft, SCHEMA) as file:
        for part in parts:
            file.write_table(part.select(SCHEMA.names).cast(SCHEMA))


def read_suggestions(path: str | Path) -> pa.Table:
    """A suggestions file (.parquet or .csv) with the columns and types of `SCHEMA`; others are left out."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; `fewtags complete RUN DATA --out DIR` writes it")
    try:
        table = _read_csv(path) if path.suffix.lower() == ".csv" else pq.read_table(path)
    except (pa.ArrowException, OSError) as problem:
        raise UserError(f"{path}: not readable as suggestions ({str(problem).splitlines()[0]})") from problem
    if missing := [name for name in SCHEMA.names if name not in table.column_names]:
        raise UserError(f"{path}: no column {', '.join(missing)}; is it a file of suggestions?")
    return _typed(table, path)


def _typed(table: pa.Table, path: Path) -> pa.Table:
    try:
        return table.select(SCHEMA.names).cast(SCHEMA)
    except (pa.ArrowException, ValueError) as problem:
        raise UserError(f"{path}: not readable as suggestions ({str(problem).splitlines()[0]})") from problem


def _read_csv(path: Path) -> pa.Table:
    """A blank cell is null in a column of numbers and an empty text elsewhere."""
    types = {field.name: field.type for field in SCHEMA}
    how = pacsv.ConvertOptions(column_types=types, strings_can_be_null=False)
    return pacsv.read_csv(path, convert_options=how)
