"""The picture of the comparison: what is drawn is what the rows say."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks import photographs
from tests.benchmark.fabricate import results

MIXED = pd.DataFrame(
    [
        (0.1, 0, "plain", 40.0, 43.0, 50.0),
        (0.1, 1, "plain", 42.0, 45.0, 48.0),
        (0.1, 1, "sst", 44.0, 46.0, 48.0),
        (0.3, 0, "plain", 50.0, 52.0, 55.0),
        (0.5, 0, "sst", 54.0, 57.0, 58.0),
    ],
    columns=["known", "seed", "method", "mAP", "with_discriminant", "hst"],
)


def test_a_rival_is_held_against_hst_on_its_own_seeds():
    gaps = photographs.behind(MIXED, 0.1, ["sst", "plain"])
    assert gaps.loc["plain"].tolist() == [8.0, 5.0]
    assert gaps.loc["sst"].tolist() == [4.0, 2.0], "seed 1 alone: hst has 48 there, not its mean of 49"
    assert photographs.behind(MIXED, 0.3, ["sst", "plain"]).loc["sst"].isna().all()


def test_curves_are_means_over_seeds():
    rows = results(("plain", "asl", "hst", "full_labels"), known=(0.1, 0.5), seeds=(0, 1, 2))
    curves, *leads = photographs.picture(rows, MIXED).axes
    drawn = {tuple(np.round(line.get_ydata(), 6)) for line in curves.get_lines()}
    for method in ("plain", "asl", "hst"):
        own = rows[rows["method"] == method].groupby("known")["mAP"].mean()
        assert tuple(own.round(6)) in drawn, method
    bound = rows["mAP"][rows["method"] == "full_labels"].mean()
    assert (round(bound, 6),) * 2 in drawn
    assert {text.get_text() for text in curves.texts} == {"plain", "hst", "ssgrl with all labels"}
    assert [axes.get_title() for axes in leads] == ["10 % known", "30 % known", "50 % known"]
    assert [label.get_text() for label in leads[0].get_yticklabels()] == ["sst", "plain"]


def test_the_kept_rows_make_a_png(tmp_path):
    photographs.main(tmp_path / "results.png")
    assert (tmp_path / "results.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
