"""results.csv: what is read is what was written, in one order, without duplicates."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewtags.benchmark.results import COLUMNS, KEY, read_results, row_of, with_row, write_results
from fewtags.errors import UserError

METRICS = {
    "method": "hst",
    "known": 0.1,
    "seed": 2,
    "mAP": 43.123456,
    "mAP_voc": None,
    "images": 48,
    "test_images": 16,
    "epochs": 3,
    "backbone": "lite0",
    "recipe_hash": "not this one",
    "seconds": 4.2,
    "training_seconds": 3.1,
    "peak_memory_gib": 0.5,
    "per_category": {"dog": 1.0},
    "pseudo_labels": {"intra_made": 12.0, "intra_right": 5.0, "later_made": 1.0},
}


def row(**changes):
    data = changes.pop("data", "photos")
    return row_of(data, METRICS | changes, "abc", "0.1.0")


def test_a_row_holds_the_figures_and_nothing_of_the_machine():
    made = row()
    assert made["mAP"] == 43.1235
    assert made["mAP_voc"] is None
    assert (made["intra_made"], made["later_made"]) == (12, 1)
    assert (made["recipe_hash"], made["version"], made["data"]) == ("abc", "0.1.0", "photos")
    assert "per_category" not in made


def test_written_rows_are_read_back(tmp_path: Path):
    rows = read_results(tmp_path)
    assert rows.empty
    assert list(rows.columns) == list(COLUMNS)
    for made in (row(), row(method="plain", pseudo_labels={}), row(method="plain", known=0.05, pseudo_labels={})):
        rows = with_row(rows, made)
    write_results(tmp_path, rows, ["plain", "hst"])
    for source in (tmp_path, tmp_path / "results.csv"):
        again = read_results(source)
        assert list(again["method"]) == ["plain", "plain", "hst"]
        assert list(again["known"]) == [0.05, 0.1, 0.1]
        assert again["intra_made"].isna().tolist() == [True, True, False]
    assert list(again.columns[-3:]) == ["later_made", "recipe_hash", "version"]
    assert ",12,5," in (tmp_path / "results.csv").read_text()
    before = (tmp_path / "results.csv").read_bytes()
    write_results(tmp_path, again, ["plain", "hst"])
    assert (tmp_path / "results.csv").read_bytes() == before


def test_rows_are_sorted_by_data_method_known_and_seed(tmp_path: Path):
    rows = read_results(tmp_path)
    for data, method, known, seed in [
        *(("b", "hst", 0.5, 0), ("a", "zebra", 0.1, 0), ("a", "hst", 0.5, 1), ("a", "hst", 0.5, 0)),
        *(("a", "plain", 0.9, 0), ("a", "hst", 0.1, 1)),
    ]:
        rows = with_row(rows, row(data=data, method=method, known=known, seed=seed))
    write_results(tmp_path, rows, ["plain", "hst"])
    assert list(read_results(tmp_path)[list(KEY)].itertuples(index=False, name=None)) == [
        *(("a", "plain", 0.9, 0), ("a", "hst", 0.1, 1), ("a", "hst", 0.5, 0), ("a", "hst", 0.5, 1)),
        *(("a", "zebra", 0.1, 0), ("b", "hst", 0.5, 0)),
    ]


def test_a_new_row_replaces_the_old_one_of_its_cell(tmp_path: Path):
    rows = with_row(with_row(read_results(tmp_path), row(mAP=1.0)), row(mAP=2.0, seed=3))
    rows = with_row(rows, row(mAP=9.0))
    assert sorted(rows["mAP"]) == [2.0, 9.0]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", 'data,method\n"x\n'])
def test_what_is_no_table_of_results_is_an_error(tmp_path: Path, text: str):
    (tmp_path / "results.csv").write_text(text)
    with pytest.raises(UserError, match=r"results\.csv"):
        read_results(tmp_path)
