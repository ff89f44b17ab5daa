from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewtags.completion.suggestions import write_suggestions
from fewtags.errors import UserError
from fewtags.review.filters import Filters
from fewtags.review.index import KEPT, Names, open_index
from tests.review.fabricate import CATEGORIES, many_suggestions, photo_suggestions, suggestion_table

NAMES = Names([f"images/{n}.png" for n in range(10)], CATEGORIES, np.array([3, 0, 0, 0]))


def indexed(folder: Path, rows: list[dict]):
    write_suggestions(suggestion_table(rows), folder / "suggestions.parquet")
    return open_index(folder / "suggestions.parquet", NAMES, folder / "cache")


def test_every_row_comes_back_as_it_was(tmp_path: Path):
    rows = photo_suggestions()
    index = indexed(tmp_path, rows)
    assert len(index) == len(rows)
    for number, row in enumerate(rows):
        assert NAMES.images[index.image[number]] == row["image"]
        assert NAMES.categories[index.category[number]] == row["category"]
        assert index.probability[number] == pytest.approx(row["probability"])
        assert (index.decision(number), index.origin(number)) == (row["decision"], row["origin"])
        assert index.reasons(number)["intra_because"] == row["intra_because"]
        assert index.row(int(index.image[number]), int(index.category[number])) == number


def test_reasons_are_found_beyond_the_first_batch(tmp_path: Path):
    table, names = many_suggestions(120_000)
    write_suggestions(table, tmp_path / "s.parquet")
    index = open_index(tmp_path / "s.parquet", names, tmp_path / "cache")
    for row in (0, 49_999, 50_000, 99_999, 100_000, 119_999):
        assert index.reasons(row)["cross_because"] == table["cross_because"][row].as_py()


def test_rows_of_many_entries(tmp_path: Path):
    index = indexed(tmp_path, photo_suggestions())
    assert index.rows(np.array([0, 0, -1, 9]), np.array([0, 1, 2, 3])).tolist() == [-1, 0, -1, 36]
    assert index.row(0, 0) is None


def test_built_once_for_a_file_and_anew_for_another(tmp_path: Path):
    first = indexed(tmp_path, photo_suggestions())
    built = (first.folder / "facts.json").stat().st_mtime_ns
    assert (indexed(tmp_path, photo_suggestions()).folder / "facts.json").stat().st_mtime_ns == built
    assert indexed(tmp_path, photo_suggestions()[:5]).folder != first.folder


def test_old_indices_are_removed(tmp_path: Path):
    for count in range(1, KEPT + 3):
        last = indexed(tmp_path, photo_suggestions()[:count])
    assert len(list(last.folder.parent.iterdir())) == KEPT
    assert last.folder.is_dir()


def test_csv_and_no_rows(tmp_path: Path):
    write_suggestions(suggestion_table(photo_suggestions()), tmp_path / "s.csv")
    assert len(open_index(tmp_path / "s.csv", NAMES, tmp_path / "cache")) == 37
    empty = indexed(tmp_path, [])
    assert len(empty) == 0
    assert empty.row(0, 0) is None
    assert empty.rows(np.array([0]), np.array([0])).tolist() == [-1]
    assert Filters(low=0.5).mask(empty).tolist() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": "other.png"}, "row 2, column 'image': 'other.png' is not in DATA"),
        ({"category": "dog"}, "row 2, column 'category': 'dog' is not in DATA"),
        ({"decision": "maybe"}, "row 2, column 'decision': 'maybe' is not in one of present, absent, unknown"),
        ({"origin": "magic"}, "row 2, column 'origin'"),
        ({"probability": 1.5}, "row 2, column 'probability': 1.5 is not between 0 and 1"),
        ({"probability": float("nan")}, "row 2, column 'probability'"),
        (
            {"category": "mouse", "image": "images/0.png"},
            "rows 1 and 2 are about the same entry: images/0.png, mouse",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, change: dict, message: str):
    rows = photo_suggestions()
    rows[1] |= change
    with pytest.raises(UserError) as problem:
        indexed(tmp_path, rows)
    assert message in str(problem.value)
    assert not list((tmp_path / "cache").glob("review/*"))  # nothing half built stays


def test_files_that_are_no_suggestions(tmp_path: Path):
    with pytest.raises(UserError, match="there is no such file"):
        open_index(tmp_path / "gone.parquet", NAMES, tmp_path / "cache")
    (tmp_path / "text.parquet").write_text("text")
    with pytest.raises(UserError, match="not readable as suggestions"):
        open_index(tmp_path / "text.parquet", NAMES, tmp_path / "cache")
    pq.write_table(pa.table({"image": ["a"]}), tmp_path / "few.parquet")
    with pytest.raises(UserError, match="no column category"):
        open_index(tmp_path / "few.parquet", NAMES, tmp_path / "cache")


@pytest.mark.parametrize(
    "filters",
    [
        Filters(),
        Filters(categories=frozenset([1, 3])),
        Filters(low=0.3, high=0.7),
        Filters(decisions=frozenset(["present"])),
        Filters(origins=frozenset(["model", "none"]), low=0.1),
        Filters(frozenset([0]), 0.2, 0.9, frozenset(["unknown", "absent"]), frozenset(["none", "cross"])),
    ],
)
def test_filters_equal_a_plain_loop(tmp_path: Path, filters: Filters):
    rows = photo_suggestions()
    mask = filters.mask(indexed(tmp_path, rows))
    expected = [
        (not filters.categories or CATEGORIES.index(row["category"]) in filters.categories)
        and filters.low <= row["probability"] <= filters.high
        and (not filters.decisions or row["decision"] in filters.decisions)
        and (not filters.origins or row["origin"] in filters.origins)
        for row in rows
    ]
    assert mask.tolist() == expected
    assert any(expected)
