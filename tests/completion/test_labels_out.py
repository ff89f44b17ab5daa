"""Labels written back: every byte that is not a filled hole stays."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewtags.completion.cells import edit_csv, edit_parquet, edited, spans
from fewtags.completion.labels_out import changes, completed_table, write_labels
from fewtags.errors import UserError
from fewtags.labels.formats import folder
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.table import LabelTable

ODD = (
    '\ufeffimage,split,"dog, big",cat\r\n"a ""1"".jpg",train,"?",yes\r\n\r\nb.jpg,train, no ,?\r\nc.jpg,test,yes,?'
).encode()


def test_only_the_filled_cells_change(tmp_path: Path):
    (tmp_path / "labels.csv").write_bytes(ODD)
    wanted = {"dog, big": {0: "yes"}, "cat": {1: "no", 2: "yes"}}
    edit_csv(tmp_path / "labels.csv", tmp_path / "out.csv", wanted)
    expected = ODD.replace(b'"?",yes', b'"yes",yes').replace(b" no ,?", b" no ,no").replace(b"yes,?", b"yes,yes")
    assert (tmp_path / "out.csv").read_bytes() == expected


def test_no_change_leaves_the_file_as_it_is():
    text = ODD.decode("utf-8-sig")
    assert edited(text, {}) == text


def test_a_token_that_needs_quotes_gets_them():
    assert edited("image,cat\na,\n", {"cat": {0: 'yes, "sure"'}}) == 'image,cat\na,"yes, ""sure"""\n'


cells = st.lists(
    st.lists(st.text(alphabet='ab,"\n x', max_size=4), min_size=2, max_size=2), min_size=1, max_size=5
)


@given(cells, st.sampled_from(["\n", "\r\n"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_cells_are_found_as_the_csv_module_finds_them(rows, ending, quoting):
    stream = io.StringIO()
    csv.writer(stream, lineterminator=ending, quoting=quoting).writerows([["image", "cat"], *rows])
    text = stream.getvalue()
    found = [
        [text[a:b][1:-1].replace('""', '"') if text[a:b].startswith('"') else text[a:b] for a, b in row]
        for row in spans(text)
    ]
    before = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    assert found == before
    changed = edited(text, {"cat": {0: "1"}})
    again = [row for row in csv.reader(io.StringIO(changed, newline="")) if row]
    assert again[1][1] == "1"
    again[1][1] = before[1][1]
    assert again == before


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string(), pa.int8()])
def test_parquet_columns_keep_their_type(tmp_path: Path, kind):
    cells = {"image": ["a", "b"], "cat": pa.array(["1", None] if kind == pa.string() else [1, None], kind)}
    pq.write_table(pa.table(cells), tmp_path / "labels.parquet")
    edit_parquet(tmp_path / "labels.parquet", tmp_path / "out.parquet", {"cat": {1: "0"}})
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.field("cat").type == kind
    assert [str(value).removesuffix(".0") for value in table["cat"].to_pylist()] == ["1", "0"]


def test_a_parquet_column_that_cannot_hold_the_token(tmp_path: Path):
    pq.write_table(pa.table({"image": ["a"], "cat": pa.array([None], pa.int8())}), tmp_path / "labels.parquet")
    with pytest.raises(UserError, match="column 'cat' of type int8 cannot hold 'yes'"):
        edit_parquet(tmp_path / "labels.parquet", tmp_path / "out.parquet", {"cat": {0: "yes"}})


def table_of(values) -> LabelTable:
    values = np.array(values, np.int8)
    images = tuple(f"{row}.jpg" for row in range(len(values)))
    return LabelTable(images, ("dog", "cat"), values, ("train",) * len(values))


def test_filled_entries_say_where_they_come_from():
    before = table_of([[1, 0], [0, -1]])
    changed = np.array([[True, False], [False, True]])  # in the model's order: cat, dog
    values, sure = np.array([[-1, 0], [0, 1]], np.int8), np.array([[0.9, 0], [0, 0.8]], np.float32)
    after = completed_table(before, ["cat", "dog"], changed, values, sure)
    assert after.values.tolist() == [[1, -1], [1, -1]]
    assert after.source.tolist() == [["given", "completed"], ["completed", "given"]]
    assert after.confidence[0, 1] == pytest.approx(0.9)
    assert after.confidence[1, 0] == pytest.approx(0.8)
    assert np.isnan(after.confidence[[0, 1], [0, 1]]).all()
    tokens = Tokens.parse("present=yes,absent=no,unknown=?")
    assert changes(before, after, tokens) == {"dog": {1: "yes"}, "cat": {0: "no"}}


def test_a_folder_is_written_with_its_own_tokens_and_read_again(tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir()
    for name in ("0.jpg", "1.jpg"):
        (data / name).write_bytes(b"")
    (data / "labels.csv").write_text("image,split,cat,dog\n0.jpg,train,?,yes\n1.jpg,train,no,?\n")
    tokens = "present=yes,absent=no,unknown=?"
    before = folder.read(data, Tokens.parse(tokens)).table
    changed = np.array([[True, False], [False, False]])
    after = completed_table(
        before, ["cat", "dog"], changed, np.ones((2, 2), np.int8), np.full((2, 2), 0.7, np.float32)
    )
    out = tmp_path / "out"
    assert write_labels(str(data), before, after, out, tokens) == []
    assert (out / "labels.csv").read_text() == "image,split,cat,dog\n0.jpg,train,yes,yes\n1.jpg,train,no,?\n"
    meta = pd.read_parquet(out / "labels.meta.parquet")
    assert meta[["image", "category", "value", "source"]].to_numpy().tolist() == [["0.jpg", "cat", 1, "completed"]]
    for name in ("labels.csv", "labels.meta.parquet"):
        (out / name).replace(data / name)
    again = folder.read(data, Tokens.parse(tokens)).table
    assert again.values.tolist() == after.values.tolist()
    assert again.source.tolist() == [["completed", "given"], ["given", ""]]


def test_formats_that_cannot_say_unknown_get_labels_csv_alone(tmp_path: Path):
    before = table_of([[1, 0], [0, -1]])
    notes = write_labels("tags:somewhere", before, before, tmp_path, None)
    assert len(notes) == 1
    assert notes[0].startswith("Only labels.csv was written, not tags")
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]
