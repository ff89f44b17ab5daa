"""Seeds and test images as two samples: is a method ahead of its rivals?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score

from benchmarks import claim
from benchmarks.claim import claims, contenders, draws, resampled_map
from benchmarks.evidence import claim as table_of
from fewtags.benchmark.cells import Block
from fewtags.benchmark.results import COLUMNS
from fewtags.benchmark.sweep import benchmark
from fewtags.errors import UserError
from fewtags.recipe import Recipe
from tests.conftest import TINY, write_colours


def test_our_variants_the_upper_bound_and_the_method_with_an_addition_are_no_rivals(tmp_path: Path):
    names = ["plain", "hst", "hst.sa", "full_labels", "hst_fb", "sst", "asl.epochs.4"]
    rows = pd.DataFrame([dict.fromkeys(COLUMNS, 0) | {"data": "photos", "method": name} for name in names])
    elsewhere = rows.head(1).assign(data="other", method="kggr")
    pd.concat([rows, elsewhere]).to_csv(tmp_path / "results.csv", index=False)
    assert contenders(tmp_path, "photos")["method"].tolist() == ["plain", "hst", "sst", "asl.epochs.4"]
    with pytest.raises(UserError, match=r"no row of scenes there; give the folder of a `fewtags benchmark` of it"):
        contenders(tmp_path, "scenes")


def test_draws_are_as_many_images_as_there_are():
    drawn = draws(30, 5)
    assert drawn.shape == (6, 30)
    assert (drawn[0] == 1).all()
    assert (drawn.sum(1) == 30).all()
    assert (drawn[1:] != 1).any(1).all()
    assert (drawn == draws(30, 5)).all()


def test_a_draws_map_is_scikit_learns_on_the_images_drawn():
    rng = np.random.default_rng(0)
    scores, labels = rng.random((40, 3)), rng.choice([-1, -1, 0, 1], (40, 3))
    labels[:, 2] = -1
    labels[7, 2] = 1  # not in every draw
    drawn = draws(40, 20)
    found = resampled_map(scores, labels, drawn)
    assert (drawn[:, 7] == 0).any()
    for counts, value in zip(drawn, found, strict=True):
        rows = np.repeat(np.arange(40), counts.astype(int))
        each = []
        for c in range(3):
            known = [row for row in rows if labels[row, c] != 0]
            truth = [labels[row, c] == 1 for row in known]
            if any(truth):
                each.append(average_precision_score(truth, scores[known, c]))
        assert value == pytest.approx(100 * np.mean(each))


def test_claims_are_paired_by_seed_and_corrected_over_rivals():
    rng = np.random.default_rng(0)
    found = {
        (known, method, seed): 40 + lead + 10 * known + rng.normal(0, 0.3, 51)
        for known in (0.1, 0.5)
        for method, lead in (("hst", 1.0), ("plain", 0.0), ("asl", 0.9))
        for seed in range(4)
        if (method, seed) != ("asl", 3)
    }
    rows = claims(found, "hst")
    assert [(row["known"], row["rival"], row["seeds"]) for row in rows] == [
        *(("0.1", "plain", 4), ("0.1", "asl", 3), ("0.5", "plain", 4), ("0.5", "asl", 3)),
        *(("average", "plain", 4), ("average", "asl", 3)),
    ]
    first = rows[0]
    ours, theirs = (np.stack([found[0.1, name, seed] for seed in range(4)]) for name in ("hst", "plain"))
    assert first["difference"] == pytest.approx((ours - theirs)[:, 0].mean())
    assert first["smallest"] == pytest.approx((ours - theirs)[:, 0].min())
    assert first["t_p"] == pytest.approx(stats.ttest_rel(ours[:, 0], theirs[:, 0], alternative="greater").pvalue)
    assert first["t_p_holm"] == pytest.approx(min(1, 2 * first["t_p"]))
    by_draw = (ours - theirs)[:, 1:].mean(0)
    assert first["images_p"] == pytest.approx((1 + (by_draw <= 0).sum()) / 51)
    assert (first["images_low"], first["images_high"]) == pytest.approx(
        tuple(np.quantile(by_draw, [0.025, 0.975]))
    )
    assert first["drawn_seeds"] == 4
    shown = table_of(pd.DataFrame(rows))
    assert [row[0].text for row in shown.rows] == ["10 %", "10 %", "50 %", "50 %", "average", "average"]
    assert shown.rows[0][1].code


def test_it_reads_the_runs_of_a_sweep(tmp_path: Path):
    data, out = write_colours(tmp_path / "colours"), tmp_path / "sweep"
    grid = Block(("plain", "assume_absent", "full_labels"), (0.5,), (0, 1))
    assert not benchmark([str(data)], [grid], Recipe(**TINY), out).failures
    options = ["--method", "plain", "--draws", "20", "--out", str(tmp_path / "claim.csv")]
    options += ["--kept", str(tmp_path / "kept.npz")]
    assert claim.main([str(out), str(data), *options]) == 0
    rows = pd.read_csv(tmp_path / "claim.csv")
    assert rows["drawn_seeds"].tolist() == [2]
    assert claim.main([str(out), str(data), *options, "--known", "0.4"]) == 0
    assert not Path(tmp_path / "claim.csv").read_text().strip()
    assert claim.main([str(out), str(data), *options, "--known", "0.5"]) == 0
    measured = pd.read_csv(out / "results.csv").set_index(["method", "seed"])["mAP"]
    assert rows["difference"].tolist() == pytest.approx(
        [np.mean([measured["plain", seed] - measured["assume_absent", seed] for seed in (0, 1)])], abs=1e-3
    )
    write_colours(tmp_path / "other" / "colours", test=10)
    with pytest.raises(UserError, match="its predictions are of other images than the test split"):
        claim.main([str(out), str(tmp_path / "other" / "colours"), *options])


def sweep_of(tmp_path: Path) -> tuple[Path, Path, list[str]]:
    """Data, a sweep of two methods and two seeds, and options."""
    data, out = write_colours(tmp_path / "colours"), tmp_path / "sweep"
    benchmark([str(data)], [Block(("plain", "assume_absent"), (0.5,), (0, 1))], Recipe(**TINY), out)
    options = ["--method", "plain", "--draws", "20", "--out", str(tmp_path / "claim.csv")]
    return data, out, [*options, "--kept", str(tmp_path / "kept.npz")]


def test_what_draws_gave_is_kept_when_the_runs_are_gone(tmp_path: Path):
    data, out, options = sweep_of(tmp_path)
    assert claim.main([str(out), str(data), *options]) == 0
    before = pd.read_csv(tmp_path / "claim.csv")
    shutil.rmtree(out / "runs")
    assert claim.main([str(out), str(data), *options]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "claim.csv"), before, atol=1e-4)


def test_without_draws_a_cell_counts_over_seeds_alone(tmp_path: Path):
    data, out, options = sweep_of(tmp_path)
    shutil.rmtree(out / "runs")
    assert claim.main([str(out), str(data), *options]) == 0
    rows = pd.read_csv(tmp_path / "claim.csv")
    assert rows["seeds"].tolist() == [2]
    assert rows["drawn_seeds"].tolist() == [0]
    assert rows["images_p"].isna().all()
    assert [cell.text for cell in table_of(rows).rows[0][-3:]] == ["–", "–", "–"]


def test_predictions_that_do_not_give_the_rows_figure_are_refused(tmp_path: Path):
    data, out, options = sweep_of(tmp_path)
    rows = pd.read_csv(out / "results.csv")
    rows.assign(mAP=rows["mAP"] + 1).to_csv(out / "results.csv", index=False)
    with pytest.raises(UserError, match=r"its predictions give .* mAP, its row says"):
        claim.main([str(out), str(data), *options])
