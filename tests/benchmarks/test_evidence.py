"""What the pages say about promises and answers comes from committed rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import precision_promise
from benchmarks.evidence import promise, simulation
from benchmarks.tables import regenerated
from tests.conftest import TINY

FOLDER = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/completion.md", "docs/protocol.md", "docs/simulate.md"])
def test_the_tables_of_the_page_are_those_of_the_rows(page):
    text = (FOLDER / page).read_text(encoding="utf-8")
    assert regenerated(text, FOLDER) == text
    paths = re.findall(r"<!-- table \S+ from (\S+) -->", text)
    assert paths
    assert all((FOLDER / path).is_file() for path in paths)


def test_promises_are_counted():
    rows = pd.DataFrame(
        {
            "method": "plain",
            "mask": [0, 1, 2],
            "level": 0.9,
            "side": "present",
            "broken": [0, 1, 0],
            "precision": [1.0, 0.5, float("nan")],
            "filled": [2, 4, 0],
            "right": [2, 2, 0],
            "best": [5, 6, 1],
            "unknown": 100,
            "there": 10,
        }
    )
    (line,) = promise(rows).rows
    assert [cell.text for cell in line] == [
        "present",
        "0.9",
        "plain",
        "1 of 3 (1 allowed)",
        "0.750",
        "13.3 %",
        "–",
        "40.0 %",
        "–",
        "1",
    ]


def test_answers_are_a_share_of_what_all_labels_bring():
    rows = pd.DataFrame(
        {
            "order": ["full_labels", "full_labels", "value", "value", "value"],
            "seed": [0, 1, 0, 1, 0],
            "round": [0, 0, 0, 0, 1],
            "asked": [0, 0, 0, 0, 0.05],
            "mAP": [50.0, 60.0, 25.0, 36.0, 40.0],
        }
    )
    table = simulation(rows)
    assert table.columns == ("order", "0 % asked", "5 % asked")
    assert [cell.text for cell in table.rows[0]] == ["value", "30.5 ± 7.8 (55 %)", "40.0 (80 %)"]


@pytest.mark.parametrize("method", ["plain", "hst"])
def test_the_promise_is_counted_mask_by_mask(method, colours, tmp_path, capsys):
    settings = [f"{key}={json.dumps(value)}" for key, value in TINY.items() if key not in ("epochs", "device")]
    out = tmp_path / "rows.csv"
    given = ["--data", str(colours), "--methods", method, "--epochs", "1", "--device", "cpu", "--out", str(out)]
    given += ["--runs", str(tmp_path / "runs")]
    precision_promise.main([*given, "--masks", "1", "--levels", "0.8", "--set", *settings])
    rows = pd.read_csv(out)
    assert rows["side"].tolist() == ["present", "absent"]
    assert (rows["right"] <= rows["filled"]).all()
    assert rows["right_alone"].isna().all() == rows["best_alone"].isna().all() == (method == "plain")
    assert (rows["best"] <= rows["there"]).all()
    assert "nothing_filled" in capsys.readouterr().out
    precision_promise.main([*given, "--masks", "1", "--levels", "0.8", "--set", *settings])
    assert len(pd.read_csv(out)) == 2, "what is there is not run again"
    out.unlink()
    trained = (tmp_path / "runs" / f"{method}-0" / "metrics.json").stat().st_mtime_ns
    precision_promise.main([*given, "--masks", "1", "--levels", "0.8", "--set", *settings])
    assert pd.read_csv(out).equals(rows)
    assert (tmp_path / "runs" / f"{method}-0" / "metrics.json").stat().st_mtime_ns == trained


def test_the_best_threshold_is_found_by_trying_all():
    rng = np.random.default_rng(0)
    scores, right = rng.random(60), rng.random(60) < 0.6
    for level in (0.3, 0.7, 0.9, 1.0):
        tried = [right[scores >= t] for t in scores]
        expected = max((int(part.sum()) for part in tried if part.mean() >= level), default=0)
        assert precision_promise.most_right(scores, right, level) == expected
