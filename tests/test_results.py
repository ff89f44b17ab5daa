"""The tables of docs/results.md come from the rows of docs/results.csv."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

DOCS = Path(__file__).parent.parent / "docs"
ROWS = pd.read_csv(DOCS / "results.csv")
TEXT = (DOCS / "results.md").read_text()


def score(values: pd.Series) -> str:
    return f"{values.mean():.1f} ± {values.std():.1f}"


@pytest.mark.parametrize("method", sorted(set(ROWS["method"])))
def test_each_line_of_the_table_is_regenerated(method: str):
    rows = ROWS[ROWS["method"] == method].sort_values("seed")
    assert list(rows["seed"]) == [0, 1, 2]
    cells = [score(rows[name]) for name in ("mAP", "mAP_voc", "OF1", "CF1")]
    per_seed = " / ".join(f"{value:.1f}" for value in rows["mAP"])
    seconds = f"{rows['training_seconds'].median():.0f} s"
    assert f"| `{method}` | {' | '.join([*cells, per_seed, seconds])} |" in TEXT


def test_pseudo_labels_of_hst_are_regenerated():
    for row in ROWS[ROWS["method"] == "hst"].itertuples():
        cells = [
            f"{made_right[1]:,} / {made_right[0]:,}"
            for made_right in ((row.intra_made, row.intra_right), (row.cross_made, row.cross_right))
        ]
        ceiling = f"{100 * row.reachable / row.hidden_present:.0f} %"
        assert f"| {row.seed} | {cells[0]} | {cells[1]} | {row.hidden_present:,} | {ceiling} |" in TEXT
