"""Rivals with the discriminant of hst: what is mixed, and that a sweep's runs are read."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import mean, stdev

import pandas as pd
import pytest
import torch
from scipy import stats

from benchmarks import with_discriminant
from benchmarks.evidence import lead
from benchmarks.evidence import with_discriminant as table_of
from benchmarks.with_discriminant import brought_to
from fewtags.benchmark.cells import Block
from fewtags.benchmark.sweep import benchmark
from fewtags.errors import UserError
from fewtags.recipe import Recipe
from tests.conftest import TINY, write_colours
from tests.oracles.discriminant import direction


def test_scores_are_brought_to_the_mean_and_spread_of_others():
    draw = torch.Generator().manual_seed(0)
    scores, beside = 3 * torch.randn(50, 2, generator=draw) - 1, torch.randn(50, 2, generator=draw)
    beside[:, 1] = 7.0  # a category of which nothing is known
    found = brought_to(scores, beside)
    assert torch.allclose(found.mean(0), scores.mean(0), atol=1e-5)
    assert found[:, 0].std() == pytest.approx(float(scores[:, 0].std()), rel=1e-4)
    assert (found[:, 0].argsort() == beside[:, 0].argsort()).all()
    assert found[:, 1].std() < 1e-5


def test_the_scores_are_those_of_the_discriminant(monkeypatch: pytest.MonkeyPatch):
    """Against a loop; what is described of an image are the roots of its pooled map."""
    draw = torch.Generator().manual_seed(1)
    train, scored = (torch.rand(n, 1, 3, 2, 2, generator=draw).numpy() for n in (24, 5))
    known = torch.where(torch.rand(24, 2, generator=draw) < 0.4, 1.0, -1.0)
    monkeypatch.setattr(with_discriminant, "make_backbone", lambda recipe: type("Bare", (), {"classes": None}))
    found = with_discriminant.discriminant_scores(train, scored, known, Recipe())
    ridge = with_discriminant.Described(train, known, None).images.ridge
    roots = torch.from_numpy(train[:, 0]).mean((2, 3)).sqrt()
    centred, others = roots - roots.mean(0), torch.from_numpy(scored[:, 0]).mean((2, 3)).sqrt() - roots.mean(0)
    for c in range(2):
        expected = others @ torch.tensor(direction(centred.tolist(), (known[:, c] > 0).tolist(), ridge))
        assert torch.corrcoef(torch.stack([found[:, c], expected]))[0, 1] == pytest.approx(1, abs=1e-4)


def test_it_reads_the_runs_of_a_sweep_and_keeps_rows_whose_runs_are_gone(tmp_path: Path, capsys):
    data, out, file = write_colours(tmp_path / "colours"), tmp_path / "sweep", tmp_path / "with.csv"
    grid = Block(("hst", "plain", "assume_absent", "full_labels"), (0.5,), (0, 1))
    assert not benchmark([str(data)], [grid], Recipe(**TINY), out).failures
    assert with_discriminant.main([str(out), str(data), "--out", str(file)]) == 0
    rows = pd.read_csv(file)
    assert rows[["seed", "method"]].values.tolist() == [
        *([0, "assume_absent"], [0, "plain"], [1, "assume_absent"], [1, "plain"])
    ]
    measured = pd.read_csv(out / "results.csv").set_index(["method", "seed"])["mAP"]
    assert rows["mAP"].tolist() == pytest.approx(
        [measured[row.method, row.seed] for row in rows.itertuples()], abs=1e-2
    )
    assert rows["hst"].tolist() == pytest.approx([measured["hst", seed] for seed in rows["seed"]], abs=1e-2)
    assert (rows["with_discriminant"] != rows["mAP"]).any()
    none = tmp_path / "none.csv"
    assert with_discriminant.main([str(out), str(data), "--share", "0", "--out", str(none)]) == 0
    assert (pd.read_csv(none)["with_discriminant"] == rows["mAP"]).all()
    first = table_of(rows).rows[0]
    ahead = rows[rows["method"] == first[1].text].eval("hst - with_discriminant")
    assert float(first[6].text.replace("−", "-")) == pytest.approx(ahead.mean(), abs=0.006)
    shutil.rmtree(out / "runs")
    assert with_discriminant.main([str(out), str(data), "--out", str(file)]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(file), rows)
    with pytest.raises(UserError, match="none of its runs has kept its predictions"):
        with_discriminant.main([str(out), str(data), "--out", str(tmp_path / "new.csv")])


def test_how_certain_the_lead_is():
    """By hand: mean and deviation of the differences, t with one degree of freedom less, Holm over two."""
    ahead = {"plain": [2.0, 3.0, 4.0], "sarb": [0.5, 0.1, 0.9], "asl": [1.0]}
    rows = pd.DataFrame(
        {"known": 0.1, "seed": seed, "method": rival, "mAP": 40.0, "with_discriminant": 50.0 - gap, "hst": 50.0}
        for rival, gaps in ahead.items()
        for seed, gap in enumerate(gaps)
    )
    found = {line[1].text: line[-1].text for line in table_of(rows).rows}
    single = {
        rival: stats.t.sf(mean(gaps) / (stdev(gaps) / len(gaps) ** 0.5), 2)
        for rival, gaps in ahead.items()
        if len(gaps) > 1
    }
    assert found["plain"] == f"{2 * single['plain']:.3f}"
    assert found["sarb"] == f"{max(single['sarb'], 2 * single['plain']):.3f}"
    assert found["asl"] == "–"  # one seed tells nothing


def test_the_closest_rival_is_named():
    rows = pd.DataFrame(
        [
            (0.1, 0, "plain", 40.0, 44.0, 50.0),
            (0.1, 1, "plain", 42.0, 49.0, 52.0),
            (0.1, 1, "sarb", 47.0, 46.0, 52.0),
            (0.5, 0, "sarb", 54.0, 58.5, 58.0),
        ],
        columns=["known", "seed", "method", "mAP", "with_discriminant", "hst"],
    )
    first, second = ([cell.text for cell in line] for line in lead(rows).rows)
    assert first == ["10 %", "41.0", "51.0", "sarb", "+5.0 (1)", "plain", "+4.5 (2)"]
    assert second == ["50 %", "–", "58.0", "sarb", "+4.0 (1)", "sarb", "−0.5 (1)"]
