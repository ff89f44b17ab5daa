from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewtags.completion.suggestions import SCHEMA, read_suggestions, write_suggestions
from fewtags.errors import UserError

ROWS = [
    {
        "image": 'a "b", c.jpg',
        "category": "cell phone",
        "probability": 0.75,
        "decision": "present",
        "origin": "intra",
        "score": 0.5,
        "intra": 0.25,
        "intra_because": '[{"category": "keyboard", "p": 0.93}]',
        "cross": None,
        "cross_because": "[]",
    },
    {
        "image": "NA",
        "category": "nan",
        "probability": 0.125,
        "decision": "unknown",
        "origin": "none",
        "score": 0.25,
        "intra": None,
        "intra_because": "[]",
        "cross": -0.5,
        "cross_because": "[]",
    },
]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_what_is_written_is_read_again(tmp_path: Path, suffix: str):
    file = tmp_path / f"suggestions.{suffix}"
    write_suggestions(pa.Table.from_pylist(ROWS, SCHEMA), file)
    again = read_suggestions(file)
    assert again.schema.names == SCHEMA.names
    assert again.to_pylist() == ROWS
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_columns_that_others_added_are_left_out(tmp_path: Path):
    table = pa.Table.from_pylist(ROWS, SCHEMA).append_column("answer", pa.array(["", "yes"]))
    pq.write_table(table, tmp_path / "more.parquet")
    assert read_suggestions(tmp_path / "more.parquet").schema.names == SCHEMA.names


def test_errors_say_what_is_wrong(tmp_path: Path):
    with pytest.raises(UserError, match=r"none.parquet: there is no such file; `fewtags complete"):
        read_suggestions(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(UserError, match=r"text.parquet: not readable as suggestions"):
        read_suggestions(tmp_path / "text.parquet")
    pq.write_table(pa.table({"image": ["a"], "category": ["b"]}), tmp_path / "few.parquet")
    with pytest.raises(UserError, match="no column probability, decision"):
        read_suggestions(tmp_path / "few.parquet")
    broken = pa.Table.from_pylist(ROWS, SCHEMA).set_column(2, "probability", pa.array(["high", "low"]))
    pq.write_table(broken, tmp_path / "broken.parquet")
    with pytest.raises(UserError, match=r"broken.parquet: not readable"):
        read_suggestions(tmp_path / "broken.parquet")
