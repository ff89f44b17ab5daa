"""`fewtags benchmark` as a user runs it: processes, output, exit codes, and what is on the disk afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml

import fewtags
from fewtags import cli
from fewtags.benchmark.results import COLUMNS, METRICS, read_results
from fewtags.benchmark.sweep import cores
from fewtags.recipe import Recipe
from tests.command import fewtags as command
from tests.command import fresh_fewtags, shown_on
from tests.conftest import TINY, obey_ctrl_c, write_colours

GRID = ["--methods", "plain,hst.intra_only,full_labels", "--known", "0.3,0.5", "--seeds", "0,1"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "tiny.yaml"
    settings = Recipe(**(TINY | {"epochs": 2})).model_dump(mode="json", exclude_defaults=True)
    path.write_text(yaml.safe_dump(settings))
    return path


@pytest.fixture(scope="module")
def swept(colours: Path, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "out"
    answer = fresh_fewtags("benchmark", colours, *GRID, "--recipe", tiny, "--jobs", 2, "--out", out)
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[0] == "10 cells, 0 of them done before."
    assert sum(line.startswith("[") for line in lines) == 10
    assert any(line.startswith("[10/10] colours  ") and "mAP" in line for line in lines)
    assert "mAP, mean over seeds" in answer.stdout
    assert str(out / "report.html") in answer.stdout
    return out


def test_each_row_is_the_metrics_of_its_run(swept: Path):
    rows = read_results(swept)
    assert set(COLUMNS) <= set(rows)
    assert list(rows["method"]) == ["plain"] * 4 + ["full_labels"] * 2 + ["hst.intra_only"] * 4
    assert list(rows["known"]) == [0.3, 0.3, 0.5, 0.5, 1.0, 1.0, 0.3, 0.3, 0.5, 0.5]
    for row in rows.to_dict("records"):
        run = swept / "runs" / f"colours_{row['method']}_{row['known']:g}_{row['seed']}"
        metrics = json.loads((run / "metrics.json").read_text())
        for name in METRICS:
            assert row[name] == pytest.approx(metrics[name], abs=1e-4)
        for name in ("images", "test_images", "epochs", "backbone", "seconds", "training_seconds", "recipe_hash"):
            assert row[name] == metrics[name]
        assert row["data"] == "colours"
        assert row["version"] == fewtags.__version__
        assert row["peak_memory_gib"] == metrics["peak_memory_gib"] > 0.1
        for name, value in metrics["pseudo_labels"].items():
            assert row[name] == value
    assert rows[rows["method"] == "plain"]["intra_made"].isna().all()
    assert rows[rows["method"] == "hst.intra_only"]["intra_made"].notna().all()


def test_results_hold_no_path_and_runs_only_small_files(swept: Path):
    text = (swept / "results.csv").read_text()
    assert "/" not in text
    assert os.uname().nodename not in text.replace("colours", "")
    for run in (swept / "runs").iterdir():
        kept = {"metrics.json", "recipe.yaml", "history.csv", "log.txt", "test_predictions.parquet"}
        assert {path.name for path in run.iterdir()} == kept
        assert "epoch 2/2" in (run / "log.txt").read_text()
    assert {path.stem for path in (swept / "recipes").iterdir()} == {"plain", "hst.intra_only", "full_labels"}


def test_a_cell_gives_what_train_gives(swept: Path, colours: Path, tiny: Path, tmp_path: Path):
    run = fewtags.train(colours, out=tmp_path / "run", recipe=tiny, method="hst.intra_only", known=0.5, seed=1)
    rows = read_results(swept).query("method == 'hst.intra_only' and known == 0.5 and seed == 1")
    metrics = json.loads((run / "metrics.json").read_text())
    assert rows["mAP"].item() == pytest.approx(metrics["mAP"], abs=1e-4)
    assert rows["recipe_hash"].item() == metrics["recipe_hash"]


def test_a_finished_sweep_does_nothing_and_other_settings_are_refused(swept: Path, colours: Path, tiny: Path):
    before = (swept / "results.csv").read_bytes()
    again = command("benchmark", colours, *GRID, "--recipe", tiny, "--out", swept)
    assert again.returncode == 0, again.stderr
    assert "10 cells, 10 of them done before." in again.stdout
    assert not [line for line in again.stdout.splitlines() if line.startswith("[")]
    other = command("benchmark", colours, *GRID, "--recipe", tiny, "--set", "epochs=4", "--out", swept)
    assert other.returncode == 2
    assert "epochs: 2 → 4" in other.stderr
    assert "--redo" in other.stderr
    assert (swept / "results.csv").read_bytes() == before


def test_dry_run_prints_cells_and_cost_and_writes_nothing(swept: Path, colours: Path, tiny: Path, tmp_path: Path):
    more = ["--methods", "plain,ssgrl", "--known", "0.3,0.5", "--seeds", "0,1,2", "--jobs", "2"]
    before = (swept / "results.csv").read_bytes()
    answer = command("benchmark", colours, *more, "--recipe", tiny, "--out", swept, "--dry-run")
    assert answer.returncode == 0, answer.stderr
    words = [line.split() for line in answer.stdout.replace("│", " ").splitlines()]
    assert any(
        line[:7] == ["colours", "plain", "0.3,", "0.5", "0,", "1,", "2"] and "4/6" in line for line in words
    )
    assert any(line[:2] == ["colours", "ssgrl"] and "0/6" in line for line in words)
    assert "12 cells, 4 of them done, 8 left: about" in answer.stdout
    assert "GB on disk" in answer.stdout
    assert (swept / "results.csv").read_bytes() == before
    fresh = command("benchmark", colours, *more, "--recipe", tiny, "--out", tmp_path / "new", "--dry-run")
    assert fresh.returncode == 0
    assert not (tmp_path / "new").exists()


def test_rows_are_enough_to_go_on_and_redo_replaces_them(colours: Path, tiny: Path, tmp_path: Path):
    asked = ["benchmark", colours, "--methods", "plain", "--known", "0.5", "--recipe", tiny, "--out", tmp_path]
    assert command(*asked, "--seeds", "0").returncode == 0
    table = pd.read_csv(tmp_path / "results.csv")
    table.assign(mAP=-1.0).to_csv(tmp_path / "results.csv", index=False)
    for path in (tmp_path / "runs").rglob("*.json"):
        path.unlink()
    more = command(*asked, "--seeds", "0,1", "--keep-runs")
    assert "2 cells, 1 of them done before." in more.stdout
    assert read_results(tmp_path)["mAP"].tolist()[0] == -1
    assert (tmp_path / "runs" / "colours_plain_0.5_1" / "model.safetensors").is_file()
    assert command(*asked, "--seeds", "0,1", "--redo").returncode == 0
    assert read_results(tmp_path)["mAP"].tolist()[0] == pytest.approx(table["mAP"].item())
    assert len(read_results(tmp_path)) == 2


def test_failed_cells_are_reported_and_the_rest_is_done(colours: Path, tiny: Path, tmp_path: Path):
    broken = write_colours(tmp_path / "broken")
    (broken / "images" / "000.png").write_text("no image")
    asked = ["--methods", "ssgrl,plain", "--known", "0.5", "--seeds", "0", "--recipe", tiny]
    exploding = ["--set", "head_lr=1e30", "--set", "clip_norm=0"]  # plain has no head of its own
    answer = command("benchmark", broken, colours, *asked, *exploding, "--out", tmp_path / "out")
    assert answer.returncode == 1, answer.stderr
    assert "3 failed; the same command tries them again" in answer.stderr
    assert "000.png" in answer.stderr
    assert "the loss became nan" in answer.stderr
    log = tmp_path / "out" / "runs" / "colours_ssgrl_0.5_0" / "log.txt"
    assert f"colours  ssgrl  known 0.5  seed 0: {log}" in answer.stderr
    assert "the loss became nan" in log.read_text()
    rows = read_results(tmp_path / "out")
    assert list(zip(rows["data"], rows["method"], strict=True)) == [("colours", "plain")]
    again = command("benchmark", colours, *asked, *exploding, "--out", tmp_path / "out")
    assert again.returncode == 1
    assert "2 cells, 1 of them done before." in again.stdout
    assert "[1/1] colours  ssgrl  known 0.5  seed 0  failed: the loss became nan" in again.stdout


def test_ctrl_c_stops_and_the_same_command_goes_on(colours: Path, tiny: Path, tmp_path: Path):
    out = tmp_path / "out"
    asked = ["benchmark", colours, "--methods", "plain", "--known", "0.5", "--seeds", "0,1", "--recipe", tiny]
    asked += ["--set", "epochs=100", "--out", out]
    program = [sys.executable, "-m", "fewtags", *map(str, asked)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    sweep = subprocess.Popen(program, **pipes, preexec_fn=obey_ctrl_c)
    history = out / "runs" / "colours_plain_0.5_0" / "history.csv"
    for _ in range(1200):
        if history.is_file() and len(history.read_text().splitlines()) > 3:
            break
        time.sleep(0.05)
    busy = command("benchmark", *asked[1:])
    assert busy.returncode == 2
    assert "another `fewtags benchmark` is running there" in busy.stderr
    sweep.send_signal(signal.SIGINT)
    _, error = sweep.communicate(timeout=60)
    assert sweep.returncode == 130, error
    assert "Go on with the same command." in error
    assert "Traceback" not in error
    before = history.read_text()
    time.sleep(0.5)
    assert history.read_text() == before  # nothing runs any more
    answer = command(*asked)
    assert answer.returncode == 0, answer.stderr
    assert list(read_results(out)["seed"]) == [0, 1]
    log = (history.parent / "log.txt").read_text()
    assert log.count("Training on") == 2
    assert log.count("epoch 1/100") == 1  # the second time it went on from a checkpoint


def test_a_terminal_shows_a_table(colours: Path, tiny: Path, tmp_path: Path):
    asked = ["benchmark", colours, "--methods", "plain,hst", "--known", "0.5", "--seeds", "0", "--recipe", tiny]
    screen, terminal = os.openpty()
    program = [sys.executable, "-m", "fewtags", *map(str, [*asked, "--out", tmp_path])]
    environment = os.environ | {"COLUMNS": "120", "TERM": "xterm"}
    process = subprocess.Popen(program, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    text = shown_on(screen)
    assert process.wait() == 0, text
    for word in ("done", "running", "left", "failed", "expected end", "hst  known 0.5  seed 0", "/2", "mAP"):
        assert word in text
    assert "not known yet" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scenes", "--methods", "hts"], "there is no method 'hts'; did you mean hst"),
        (["scenes", "--known", "0.1,2"], "--known 2: a share of the labels lies above 0 and is at most 1"),
        (["scenes", "--seeds", "x"], "--seeds x: not a whole number"),
        (["scenes", "--jobs", "0"], "--jobs 0: at least one"),
        (["scenes", "--suite", "big"], "--suite big: it is paper or quick"),
        (["scenes", "--recipe", "nothing"], "no recipe 'nothing'"),
        (["scenes", "--set", "epoch=3"], "did you mean 'epochs'"),
        (["nowhere"], "nowhere: there is no such folder"),
        (["scenes", "scenes"], "both called 'scenes'"),
        (["scenes", "--words", "gone.txt"], "gone.txt: there is no such file"),
        ([], "Missing argument 'DATA...'"),
    ],
)
def test_a_users_mistake_is_one_message_and_exit_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(sys, "argv", ["fewtags", "benchmark", *arguments, "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("given", "expected"), [("1", 1), ("0", 1), ("1000", None), ("", None), ("2,1", None)])
def test_no_more_threads_than_the_user_leaves(given: str, expected: int | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    everything = cores()
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert cores() == (everything if expected is None else expected)
