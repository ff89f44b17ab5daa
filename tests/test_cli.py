"""Every command as a user runs it: a process, its output, its exit code."""

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

from tests.command import fewtags, fresh_fewtags, shown_on, tiny_settings
from tests.conftest import COLOURS, obey_ctrl_c, write_colours


def test_help_answers_at_once():
    started = time.perf_counter()
    answer = fresh_fewtags("--help")
    assert answer.returncode == 0
    assert "train" in answer.stdout
    assert "predict" in answer.stdout
    assert time.perf_counter() - started < 2  # 0.3 s on an idle machine; tests share theirs


def test_help_imports_nothing_heavy():
    heavy = ("torch", "pandas", "timm", "matplotlib")
    code = f"import sys, fewtags.cli; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def run(colours: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    flags = ["--method", "hst", "--known", "0.5", "--seed", "3"]
    answer = fresh_fewtags("train", colours, *flags, *tiny_settings(), "--out", out)
    assert answer.returncode == 0, answer.stderr
    assert "Expected:" in answer.stdout
    assert "epoch 3/3" in answer.stdout
    assert "mAP" in answer.stdout
    assert "learned" in answer.stdout  # the word vectors
    return out


def test_train_writes_the_whole_run_folder(run: Path):
    expected = {"recipe.yaml", "labels.json", "model.safetensors", "metrics.json", "history.csv", "report.html"}
    assert expected <= {path.name for path in run.iterdir()}
    assert len(list((run / "checkpoints").iterdir())) == 2
    metrics = json.loads((run / "metrics.json").read_text())
    names = ["mAP", "mAP_voc", "OP", "OR", "OF1", "CP", "CR", "CF1", "OP_top3", "CF1_top3"]
    assert all(0 <= metrics[name] <= 100 for name in names)
    assert (metrics["known"], metrics["method"], metrics["seed"]) == (0.5, "hst", 3)
    assert set(metrics["per_category"]) == set(COLOURS)
    history = pd.read_csv(run / "history.csv")
    assert list(history["epoch"]) == [1, 2, 3]
    assert {"loss/known", "loss/intra", "loss/cross", "loss/threshold_intra", "threshold/cross"} <= set(history)


def test_evaluate_repeats_the_metrics_of_training(run: Path, colours: Path):
    answer = fewtags("evaluate", run, colours, "--json")
    assert answer.returncode == 0, answer.stderr
    metrics = json.loads((run / "metrics.json").read_text())
    assert json.loads(answer.stdout)["mAP"] == pytest.approx(metrics["mAP"], abs=0.01)
    shown = fewtags("evaluate", run, colours, "--split", "train")
    assert shown.returncode == 0
    assert "mAP" in shown.stdout


def test_predict_prints_and_writes(run: Path, colours: Path, tmp_path: Path):
    shown = fewtags("predict", run, colours / "images" / "000.png", "--top", 2)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count(",") == 1
    for ending in ("csv", "parquet", "json"):
        out = tmp_path / f"tags.{ending}"
        written = fewtags("predict", run, colours / "images", "--threshold", "0", "--out", out)
        assert written.returncode == 0, written.stderr
        readers = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}
        table = readers[ending](out)
        assert len(table) == 64 * len(COLOURS)
        assert table["probability"].between(0, 1).all()


def test_report_is_written_anew(run: Path):
    (run / "report.html").unlink()
    answer = fewtags("report", run)
    assert answer.returncode == 0, answer.stderr
    assert "hst" in (run / "report.html").read_text().lower()


def test_new_inspect_and_convert(colours: Path, tmp_path: Path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for path in (colours / "images").iterdir():
        (photos / path.name).write_bytes(path.read_bytes())
    assert fewtags("new", photos, "--categories", "red,blue").returncode == 0
    assert (photos / "labels.csv").read_text().splitlines()[0] == "image,red,blue"
    looked = fewtags("inspect", colours, "--out", tmp_path / "picture.png")
    assert looked.returncode == 0, looked.stderr
    assert "red" in looked.stdout
    assert (tmp_path / "picture.png").stat().st_size > 1000
    made = fewtags("convert", colours, tmp_path / "small", "--sample", "10,5", "--size", 16)
    assert made.returncode == 0, made.stderr
    assert len(pd.read_csv(tmp_path / "small" / "labels.csv")) == 15


def test_methods_are_listed():
    assert "hst" in fewtags("methods").stdout
    assert "plain" in json.loads(fewtags("methods", "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "no-such-folder"], "no such folder"),
        (["train", "scenes", "--method", "nothing"], "there is no method 'nothing'"),
        (["train", "scenes", "--set", "epoch=3"], "did you mean 'epochs'"),
        (["train", "scenes", "--recipe", "nothing"], "no recipe 'nothing'"),
        (["train", "scenes", "--time-budget", "soon"], "no duration"),
        (["evaluate", "no-run", "scenes"], "no such run folder"),
        (["predict", "no-run", "x.png"], "no such run folder"),
        (["convert", "scenes", "x", "--sample", "5"], "write it as TRAIN,TEST"),
        (["report", "no-run"], "no-run"),
    ],
)
def test_a_users_mistake_is_one_message_and_exit_code_2(arguments: list[str], message: str, tmp_path: Path):
    answer = fewtags(*arguments, cwd=tmp_path)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr


def test_predict_names_what_is_missing(run: Path, tmp_path: Path):
    assert "no such file" in fewtags("predict", run, tmp_path / "gone.png").stderr
    assert "no image in this folder" in fewtags("predict", run, tmp_path).stderr
    (tmp_path / "text.png").write_text("no image")
    answer = fewtags("predict", run, tmp_path / "text.png")
    assert answer.returncode == 2
    assert "text.png" in answer.stderr


def test_a_run_is_not_overwritten(run: Path, colours: Path):
    answer = fewtags("train", colours, "--out", run)
    assert answer.returncode == 2
    assert "--resume" in answer.stderr


def test_tags_only_stops_with_the_choices(tmp_path: Path):
    data = write_colours(tmp_path / "data")
    table = pd.read_csv(data / "labels.csv", dtype=str).replace({"0": ""})
    table.to_csv(data / "labels.csv", index=False)
    answer = fewtags("train", data, *tiny_settings(), "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert "--assume-absent" in answer.stderr
    assert "--sample-absent" in answer.stderr
    for choice in (["--assume-absent", "0.1"], ["--sample-absent", "3"]):
        done = fewtags("train", data, *tiny_settings(), *choice, "--out", tmp_path / choice[0])
        assert done.returncode == 0, done.stderr


def test_a_terminal_shows_a_progress_bar(colours: Path, tmp_path: Path):
    arguments = [
        "train",
        colours,
        "--method",
        "hst",
        "--known",
        "0.5",
        *tiny_settings(),
        "--out",
        tmp_path / "run",
    ]
    screen, terminal = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fewtags", *map(str, arguments)], stdout=terminal, stderr=terminal, env=os.environ
    )
    os.close(terminal)
    text = shown_on(screen)
    assert process.wait() == 0, text
    assert "epoch 3/3  loss" in text
    assert "━" in text
    assert "θ intra" in text


def test_ctrl_c_leaves_a_run_that_can_be_resumed(colours: Path, tmp_path: Path):
    out = tmp_path / "run"
    arguments = ["train", colours, "--method", "plain", *tiny_settings(), "--set", "epochs=100000", "--out", out]
    program = [sys.executable, "-m", "fewtags", *map(str, arguments)]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=obey_ctrl_c)
    history = out / "history.csv"
    for _ in range(600):  # the first epochs' checkpoints are then there
        if history.is_file() and len(history.read_text().splitlines()) > 3:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert b"--resume" in error
    assert b"Traceback" not in error
    assert list((out / "checkpoints").iterdir())
