"""The harness: what it measures, in which order, what it skips; and that every case runs and agrees."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks import bench
from benchmarks.cases import CONTENDERS, WHOLE, Case, all_cases, chosen, least_bytes, quick_cases
from benchmarks.contenders import make_step
from benchmarks.measure import available_bytes, peak, start_peak
from tests.benchmarks.fabricate import row, rows, too_large


def test_all_sizes_of_all_modules_are_measured_once():
    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases)
    heads = {(case.categories, case.batch, case.side) for case in cases if case.module == "heads"}
    assert heads == {(c, b, s) for c in (20, 80, 200, 1000) for b in (4, 8, 32) for s in (7, 14)}
    assert {case.module for case in cases} == set(CONTENDERS)
    assert {case.contender for case in cases if case.module == "train"} == {"ours", "bare"}


def test_cases_are_chosen_by_the_beginning_of_their_names_or_a_pattern():
    cases = all_cases()
    assert {case.module for case in chosen(cases, ["sd", "cross"])} == {"sd", "cross"}
    found = chosen(cases, ["heads/C80/*/7x7/ours"])
    assert {(case.batch, case.contender) for case in found} == {(b, "ours") for b in (4, 8, 32)}
    assert chosen(cases, []) == cases


def test_contenders_of_a_size_alternate():
    cases = [Case("sd", contender, size, 4, 7) for size in (20, 80) for contender in ("ours", "textbook")]
    order = [(case.categories, case.contender, turn) for case, turn in bench.schedule(cases, 2)]
    one_size = [("ours", 1), ("textbook", 1), ("ours", 2), ("textbook", 2)]
    assert order == [(size, *turn) for size in (20, 80) for turn in one_size]


def test_measured_rounds_are_not_measured_again_nor_what_does_not_fit():
    done = rows(
        row("sd", categories=20, batch=4), too_large(module="sd", contender="textbook", categories=20, batch=4)
    )
    assert bench.is_done(done, Case("sd", "ours", 20, 4, 7), 1)
    assert not bench.is_done(done, Case("sd", "ours", 20, 4, 7), 2)
    assert not bench.is_done(done, Case("sd", "ours", 20, 8, 7), 1)
    assert bench.is_done(done, Case("sd", "textbook", 20, 4, 7), 3)
    assert not bench.is_done(pd.DataFrame(), Case("sd", "ours", 20, 4, 7), 1)


@pytest.mark.parametrize("case", quick_cases(), ids=lambda case: case.name)
def test_every_case_runs_and_contenders_agree_on_the_loss(case: Case):
    step = make_step(case)
    first = step()
    assert torch.isfinite(first)
    assert first != 0
    if case.module in WHOLE:
        return
    assert float(step()) == pytest.approx(float(first), rel=1e-5)  # a step leaves nothing behind
    ours = make_step(Case(case.module, "ours", case.categories, case.batch, case.side, scale="tiny"))
    assert float(first) == pytest.approx(float(ours()), rel=1e-4)


def test_training_steps_change_the_loss():
    step = make_step(Case("train", "ours", 8, 4, 3, scale="tiny"))
    assert len({round(float(step()), 5) for _ in range(3)}) > 1


def test_least_bytes_grow_as_the_printed_formulas_do():
    small, large = (least_bytes(Case("intra", "textbook", size, 8, 7)) for size in (100, 200))
    assert large == 4 * small
    assert least_bytes(Case("sd", "textbook", 80, 8, 14)) == 4 * least_bytes(Case("sd", "textbook", 80, 8, 7))
    assert least_bytes(Case("heads", "ours", 1000, 32, 14)) == 0
    # (B, C, C, 2D) alone at C = 200 and batch 32 is 10 GB
    assert least_bytes(Case("heads", "textbook", 200, 32, 7)) > 32 * 200**2 * 2048 * 4


def test_what_cannot_fit_is_not_tried(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    options = bench.parsed(["--memory", "0.5"])
    assert bench.attempt(Case("intra", "textbook", 1000, 32, 7), options).status == "does not fit"


def test_peak_is_counted_above_what_was_there_and_seen_after_it_is_freed():
    held = np.ones(20_000_000)
    before = start_peak()
    more = np.ones(10_000_000)
    del more
    assert 0.9 * 80e6 < peak() - before < 1.6 * 80e6
    assert available_bytes() > len(held)


def test_a_process_over_its_limit_says_that_it_does_not_fit():
    script = (
        "from benchmarks.measure import limit_memory, is_about_memory\n"
        "import torch\n"
        "limit_memory(100_000_000)\n"
        "try:\n    torch.ones(200_000_000)\n"
        "except RuntimeError as problem:\n"
        "    print(is_about_memory(problem), is_about_memory(RuntimeError('shape')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=bench.FOLDER)
    assert done.stdout.strip() == "True False", done.stderr


def test_bench_writes_rows_prints_a_table_and_goes_on_where_it_stopped(tmp_path, capsys):
    out = tmp_path / "results.csv"
    arguments = ["--quick", "--cases", "thresholds", "--threads", "1", "--patience", "0", "--out", str(out)]
    assert bench.main([*arguments, "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "DTL: thresholds" in shown
    found = pd.read_csv(out)
    assert found["contender"].tolist() == ["ours", "textbook"]
    assert found["loss"].iloc[0] == pytest.approx(found["loss"].iloc[1], rel=1e-4)
    assert (found["seconds"] > 0).all()
    assert bench.main([*arguments, "--rounds", "1"]) == 0
    assert "(round" not in capsys.readouterr().out
    assert len(pd.read_csv(out)) == 2


def test_a_case_that_fails_is_named(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr="ValueError: wrong")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SystemExit, match=r"sd/C8(.|\n)*wrong"):
        bench.attempt(Case("sd", "ours", 8, 4, 3, scale="tiny"), bench.parsed([]))


def test_cases_can_be_listed(capsys):
    assert bench.main(["--list", "--cases", "predict"]) == 0
    assert "predict/C80/b4/7x7/bare" in capsys.readouterr().out.split()
