import os
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fewtags.errors import UserError
from fewtags.labels.formats import folder
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.table import LabelTable
from tests.labels.formats.make import pictures, text

GOOD = "image,split,dog,hot dog\na.jpg,train,1,\nb/c.jpg,test,0,1\n"


@pytest.fixture
def root(tmp_path):
    pictures(tmp_path, ["a.jpg", "b/c.jpg", "d,é.jpg"])
    return tmp_path


def problem(root, content):
    text(root / "labels.csv", content)
    with pytest.raises(UserError) as caught:
        folder.read(root)
    assert str(root / "labels.csv") in str(caught.value)
    return str(caught.value)


def test_reads(root):
    text(root / "labels.csv", GOOD)
    table, image_root, notes = folder.read(root)
    assert table.images == ("a.jpg", "b/c.jpg")
    assert table.categories == ("dog", "hot dog")
    assert table.values.tolist() == [[1, 0], [-1, 1]]
    assert table.splits == ("train", "test")
    assert (image_root, notes, table.confidence, table.source) == (root, (), None, None)


def test_the_file_itself_may_be_named(root):
    text(root / "mine.csv", GOOD)
    assert folder.read(root / "mine.csv").root == root


def test_byte_order_mark_windows_lines_blanks_and_blank_lines(root):
    (root / "labels.csv").write_bytes(
        b"\xef\xbb\xbf" + GOOD.replace(",1,", ", 1 ,").replace("\n", "\r\n\r\n").encode()
    )
    assert folder.read(root).table.values.tolist() == [[1, 0], [-1, 1]]


def test_columns_may_come_in_any_order(root):
    text(root / "labels.csv", "dog,image,car,split\n1,a.jpg,0,train\n")
    table = folder.read(root).table
    assert (table.categories, table.values.tolist()) == (("dog", "car"), [[1, -1]])


def test_without_a_split_column_the_seed_splits_and_says_so(tmp_path):
    names = [f"{number}.jpg" for number in range(10)]
    pictures(tmp_path, names)
    text(tmp_path / "labels.csv", "image,dog\n" + "".join(f"{name},1\n" for name in names))
    first, second = folder.read(tmp_path, seed=1), folder.read(tmp_path, seed=2)
    assert first.table.splits.count("train") == 8
    assert first.table.splits != second.table.splits
    assert first.notes == ("labels.csv has no column 'split': a seeded 80/20 split (seed 1)",)


def test_tokens_are_told(root):
    text(root / "labels.csv", "image,split,dog,car\na.jpg,train,-1,0\n")
    tokens = Tokens.parse("present=1,absent=-1,unknown=0")
    assert folder.read(root, tokens).table.values.tolist() == [[-1, 0]]


# What can be wrong


def test_unknown_token(root):
    message = problem(root, GOOD.replace("0,1", "0,yes"))
    assert "line 3, column 'hot dog': 'yes' has no meaning (--tokens present=1,absent=0,unknown=)" in message


def test_minus_one_is_not_guessed(root):
    assert "'-1' has no meaning" in problem(root, GOOD.replace("0,1", "0,-1"))


def test_missing_image(root):
    message = problem(root, GOOD.replace("a.jpg", "z.jpg"))
    assert f"line 2, column 'image': there is no file {root / 'z.jpg'}" in message


def test_a_folder_is_not_an_image(root):
    assert "line 2, column 'image': there is no file" in problem(root, GOOD.replace("a.jpg", "b"))


def test_duplicate_row(root):
    message = problem(root, GOOD + "./b//c.jpg,test,1,1\n")
    assert "line 4, column 'image': ./b//c.jpg is already on line 3" in message


def test_duplicate_column(root):
    message = problem(root, GOOD.replace("hot dog", "dog"))
    assert "line 1, column 4: 'dog' is already the name of column 3" in message


def test_column_without_name(root):
    assert "line 1, column 4: the column has no name" in problem(root, GOOD.replace("hot dog", ""))


def test_unknown_split(root):
    message = problem(root, GOOD.replace("test", "val"))
    assert "line 3, column 'split': 'val' is neither train nor test" in message


def test_missing_image_column(root):
    message = problem(root, GOOD.replace("image", "Image"))
    assert "line 1, no column 'image'; the header is Image, split, dog, hot dog" in message


def test_other_separator(root):
    message = problem(root, GOOD.replace(",", ";"))
    assert "(separate the columns with commas)" in message


def test_no_category(root):
    assert "line 1, no category" in problem(root, "image,split\na.jpg,train\n")


@pytest.mark.parametrize("content", ["", "\ufeff\n \n"])
def test_empty_file(root, content):
    assert "the file is empty" in problem(root, content)


def test_only_a_header(root):
    assert "no image: there is no row below the header" in problem(root, "image,dog\n")


def test_ragged_row_after_a_quoted_line_break(root):
    message = problem(root, 'image,split,dog,"hot\ndog"\na.jpg,train,1,\nb/c.jpg,test,0\n')
    assert "line 4: 3 columns, the header has 4" in message


def test_broken_quotes(root):
    assert "line 3: not readable as CSV" in problem(root, GOOD.replace("b/c.jpg", '"b/c.jpg'))


def test_not_utf8(root):
    (root / "labels.csv").write_bytes(GOOD.encode() + "é.jpg,train,1,1\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"line 4, column 1: byte 0xe9 is not UTF-8. Save it as UTF-8"):
        folder.read(root)


def test_utf16(root):
    (root / "labels.csv").write_bytes(GOOD.encode("utf-16"))
    with pytest.raises(UserError, match="the file is UTF-16, not UTF-8"):
        folder.read(root)


@pytest.mark.parametrize("image", ["../a.jpg", "b/../../a.jpg", "..", "/etc/passwd"])
def test_paths_that_leave_the_folder(root, image):
    message = problem(root, GOOD.replace("a.jpg", image))
    assert f"line 2, column 'image': {image} is outside the folder" in message


def test_blank_image(root):
    assert "line 2, column 'image': is blank" in problem(root, GOOD.replace("a.jpg", ""))


def test_all_problems_at_once_but_not_more_than_twenty(root):
    message = problem(root, "image,split,dog\n" + "".join(f"{n}.jpg,dev,maybe\n" for n in range(10)))
    assert "30 problems" in message
    assert message.count("\n  - ") == 20
    assert message.endswith("... and 10 more")


def test_nothing_there(tmp_path):
    with pytest.raises(UserError, match="there is no such folder"):
        folder.read(tmp_path / "none")
    with pytest.raises(UserError, match=r"has no labels.csv .* `fewtags new"):
        folder.read(tmp_path)


def test_two_label_files_are_one_too_many(root):
    text(root / "labels.csv", GOOD)
    folder.write(folder.read(root).table, root / "other", form="parquet")
    os.replace(root / "other" / "labels.parquet", root / "labels.parquet")
    with pytest.raises(UserError, match=r"has both labels.csv and labels.parquet; keep one"):
        folder.read(root)
    with pytest.raises(UserError, match=r"labels.parquet is there already; remove it"):
        folder.write(folder.read(root / "labels.csv").table, root, form="csv")


# Round trips


@pytest.fixture
def table():
    values = np.array([[1, 0, -1], [0, 1, 1], [-1, 1, 0]], np.int8)
    images, splits = ("a.jpg", "b/c.jpg", "d,é.jpg"), ("train", "test", "train")
    return LabelTable(images, ("dog", 'a "quoted", name', "straße"), values, splits)


def same(first, second):
    return (
        (first.images, first.categories, first.splits) == (second.images, second.categories, second.splits)
        and (first.values == second.values).all()
        and (first.source is None) == (second.source is None)
        and (first.source is None or (first.source == second.source).all())
        and (first.confidence is None) == (second.confidence is None)
        and (first.confidence is None or np.array_equal(first.confidence, second.confidence, equal_nan=True))
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("tokens", [None, "present=yes,absent=no,unknown=?"])
def test_round_trip(root, table, form, tokens):
    parsed = Tokens.parse(tokens)
    file = folder.write(table, root, parsed, form)
    assert file == root / f"labels.{form}"
    assert same(folder.read(root, parsed).table, table)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_round_trip_of_completed_labels(root, table, form):
    confidence = np.full((3, 3), np.nan, np.float32)
    confidence[1, 2] = 0.75
    source = np.where(table.values == 0, "", "given").astype(object)
    source[1, 2], source[2, 1] = "intra", "review"
    completed = replace(table, confidence=confidence, source=source)
    folder.write(completed, root, form=form)
    assert same(folder.read(root).table, completed)


def test_a_label_corrected_by_hand_counts_as_given(root, table):
    source = np.where(table.values == 0, "", "given").astype(object)
    source[1, 1] = source[2, 1] = "cross"
    confidence = np.where(source == "cross", 0.9, np.nan).astype(np.float32)
    folder.write(replace(table, source=source, confidence=confidence), root)
    edited = (root / "labels.csv").read_text(encoding="utf-8").replace("b/c.jpg,test,,1,1", "b/c.jpg,test,,0,1")
    text(root / "labels.csv", edited)
    read = folder.read(root).table
    assert (read.values[1, 1], read.source[1, 1]) == (-1, "given")
    assert np.isnan(read.confidence[1, 1])
    assert read.source[2, 1] == "cross"


def test_no_provenance_is_left_over(root, table):
    source = np.where(table.values == 0, "", "intra").astype(object)
    folder.write(replace(table, source=source), root)
    assert (root / "labels.meta.parquet").exists()
    folder.write(table, root)
    assert not (root / "labels.meta.parquet").exists()


def test_provenance_of_another_table_is_refused(root, table):
    folder.write(replace(table, confidence=np.full((3, 3), 0.5, np.float32)), root)
    folder.write(table.rows(np.array([0, 1])), root / "fewer")
    os.replace(root / "fewer" / "labels.csv", root / "labels.csv")
    with pytest.raises(UserError, match=r"row 5, column 'image': 'd,é.jpg' is not in the label file"):
        folder.read(root)


def test_unreadable_provenance(root):
    text(root / "labels.csv", GOOD)
    text(root / "labels.meta.parquet", "nothing")
    with pytest.raises(UserError, match=r"labels.meta.parquet: not readable as Parquet"):
        folder.read(root)
    pd.DataFrame({"image": ["a.jpg"]}).to_parquet(root / "labels.meta.parquet")
    with pytest.raises(UserError, match="no column category, value, confidence, source"):
        folder.read(root)


def test_the_form_of_the_folder_is_kept(root, table):
    folder.write(table, root, form="parquet")
    assert folder.write(table, root).name == "labels.parquet"


def test_a_category_cannot_be_called_image(root, table):
    with pytest.raises(UserError, match="a category cannot be called 'split'"):
        folder.write(replace(table, categories=("dog", "split", "car")), root)


def test_parquet_of_numbers_with_holes(root):
    """As pandas writes a column of 1, 0 and nothing: floats."""
    frame = pd.DataFrame(
        {"image": ["a.jpg", "b/c.jpg"], "split": ["train", "test"], "dog": [1.0, None], "car": [0, 1]}
    )
    frame["dog"] = frame["dog"].astype("float64")
    frame.to_parquet(root / "labels.parquet")
    assert folder.read(root).table.values.tolist() == [[1, -1], [0, 1]]


def test_parquet_problems_name_the_row(root):
    frame = pd.DataFrame({"image": ["a.jpg", "b/c.jpg"], "split": ["train", "test"], "dog": [1.0, 0.5]})
    frame.to_parquet(root / "labels.parquet")
    with pytest.raises(UserError, match=r"row 2, column 'dog': '0.5' has no meaning"):
        folder.read(root)


def test_unreadable_parquet(root):
    text(root / "labels.parquet", "nothing")
    with pytest.raises(UserError, match=r"labels.parquet: not readable as Parquet"):
        folder.read(root)


def test_fourteen_thousand_images_in_two_seconds(tmp_path):
    names = [f"images/{number:06}.jpg" for number in range(14_000)]
    (tmp_path / "images").mkdir()
    for name in names:
        (tmp_path / name).touch()
    values = np.random.default_rng(0).choice(np.array([-1, 0, 1], np.int8), (14_000, 80))
    big = LabelTable(tuple(names), tuple(f"category {c}" for c in range(80)), values, ("train",) * 14_000)
    folder.write(big, tmp_path)
    start = time.perf_counter()
    read = folder.read(tmp_path).table
    assert time.perf_counter() - start < 2
    assert (read.values == values).all()
