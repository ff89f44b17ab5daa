"""Whole runs: what training may know, resuming, starting from a run, and what a run folder holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from sklearn.metrics import average_precision_score

import fewtags
from fewtags.errors import UserError
from fewtags.recipe import Recipe
from fewtags.training import run as run_module
from fewtags.training.callbacks import EpochFiles, checkpoints, epoch_line
from fewtags.training.folder import RunFolder
from fewtags.training.prepare import limited, make_backbone, prepare_labels, random_folds, resolved
from tests.command import fewtags as command
from tests.command import tiny_settings
from tests.conftest import TINY, write_colours

KNOWN = 0.4


def same_tensors(first: Path, second: Path) -> bool:
    one, two = load_file(first / "model.safetensors"), load_file(second / "model.safetensors")
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def flip_hidden_and_test_labels(data: Path, seed: int) -> None:
    """Turn around every label that `--known` hides, and every test label."""
    table = pd.read_csv(data / "labels.csv")
    values = table.iloc[:, 2:].to_numpy()
    train = (table["split"] == "train").to_numpy()
    signs = np.where(values[train] == 1, 1, -1).astype(np.int8)
    hidden = np.ones_like(values, dtype=bool)
    hidden[train] = fewtags_hide(signs, KNOWN, seed) == 0
    assert hidden[train].mean() > 0.4
    table.iloc[:, 2:] = np.where(hidden, 1 - values, values)
    table.to_csv(data / "labels.csv", index=False)


def fewtags_hide(values: np.ndarray, known: float, seed: int) -> np.ndarray:
    from fewtags.labels.hide import hide

    return hide(values, known, seed)


@pytest.mark.parametrize("method", ["hst", "ssgrl", "plain"])
def test_hidden_and_test_labels_never_reach_training(method: str, tmp_path: Path):
    """Through the command line, with caching: weights, θ, prototypes and A stay identical to the last bit."""
    data = write_colours(tmp_path / "data")
    runs = []
    for name in ("before", "after"):
        arguments = ["--method", method, "--known", KNOWN, "--seed", 5, *tiny_settings(), "--out", tmp_path / name]
        answer = command("train", data, *arguments)
        assert answer.returncode == 0, answer.stderr
        runs.append(tmp_path / name)
        flip_hidden_and_test_labels(data, seed=5)
    assert same_tensors(*runs)
    names = set(load_file(runs[0] / "model.safetensors"))
    if method == "hst":
        wanted = (
            "adjacency",
            "intra.threshold.theta",
            "cross.threshold.theta",
            "cross.references.0",
            "discriminant",
        )
        assert all(any(part in name for name in names) for part in wanted)
    thresholds = [json.loads((run / "labels.json").read_text())["decision_thresholds"] for run in runs]
    assert thresholds[0] == thresholds[1]
    scores = [json.loads((run / "metrics.json").read_text())["mAP"] for run in runs]
    assert scores[0] != scores[1]  # the flip did reach the evaluation


def test_the_predictions_a_run_was_scored_by_are_kept(tmp_path: Path):
    data = write_colours(tmp_path / "data")
    run = fewtags.train(str(data), out=tmp_path / "run", method="plain", known=KNOWN, **TINY)
    images, probabilities = RunFolder(run).predictions()
    table = pd.read_csv(data / "labels.csv").set_index("image")
    assert images == table.index[table["split"] == "test"].tolist()
    truth = table.loc[images].iloc[:, 1:].to_numpy()
    precisions = [average_precision_score(truth[:, c], probabilities[:, c]) for c in range(truth.shape[1])]
    assert 100 * np.mean(precisions) == pytest.approx(RunFolder(run).metrics()["mAP"], abs=1e-3)


def test_same_recipe_gives_the_same_run_and_another_seed_another(colours: Path, trained: Path, tmp_path: Path):
    again = fewtags.train(colours, out=tmp_path / "again", method="hst", known=0.5, **TINY)
    assert same_tensors(trained, again)
    other = fewtags.train(colours, out=tmp_path / "other", method="hst", known=0.5, seed=1, **TINY)
    assert not same_tensors(trained, other)


def test_a_killed_run_resumes_to_the_same_result(colours: Path, trained: Path, tmp_path: Path):
    """Killed (SIGKILL) after its second epoch, in a process of its own."""
    out = tmp_path / "killed"
    code = (
        "import os, signal, sys, json, fewtags\n"
        "from fewtags.training import callbacks\n"
        "original = callbacks.EpochFiles.on_train_epoch_end\n"
        "def kill(self, trainer, module):\n"
        "    original(self, trainer, module)\n"
        "    if trainer.current_epoch == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
        "callbacks.EpochFiles.on_train_epoch_end = kill\n"
        "settings = json.loads(sys.argv[3])\n"
        "fewtags.train(sys.argv[1], out=sys.argv[2], method='hst', known=0.5, **settings)\n"
    )
    arguments = [sys.executable, "-c", code, str(colours), str(out), json.dumps(TINY)]
    killed = subprocess.run(arguments, env=os.environ, capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    assert [path.name for path in checkpoints(out)] == ["epoch-0001.safetensors", "epoch-0002.safetensors"]
    assert not (out / "metrics.json").exists()
    answer = command("train", colours, "--out", out, "--resume")
    assert answer.returncode == 0, answer.stderr
    assert same_tensors(trained, out)
    columns = ["epoch", "loss/total", "threshold/intra", "threshold/cross"]
    histories = [pd.read_csv(folder / "history.csv")[columns] for folder in (trained, out)]
    pd.testing.assert_frame_equal(*histories, check_exact=True)


def test_resuming_needs_a_run(tmp_path: Path, colours: Path):
    with pytest.raises(UserError, match="nothing to resume"):
        fewtags.train(colours, out=tmp_path / "empty", resume=True, **TINY)


def test_init_takes_over_shared_weights_and_categories_by_name(trained: Path, tmp_path: Path):
    data = write_colours(tmp_path / "data")
    table = pd.read_csv(data / "labels.csv")
    table.insert(2, "purple", np.arange(len(table)) % 2)  # a new category, before all others
    table.to_csv(data / "labels.csv", index=False)
    tiny = TINY | {"head_lr": 1e-12, "shortcut_lr": 1e-12, "threshold_lr": 1e-12, "epochs": 1}
    out = fewtags.train(data, out=tmp_path / "more", method="hst", init=trained, **tiny)
    before, after = (load_file(folder / "model.safetensors") for folder in (trained, out))
    rows = "method.tagger.classifier.rows"
    assert torch.allclose(after[rows][1:], before[rows], atol=1e-6)
    shortcut = "method.tagger.shortcut.weight"
    assert torch.allclose(after[shortcut][1:], before[shortcut], atol=1e-6)
    assert torch.allclose(after[shortcut][0], torch.zeros(1), atol=1e-6)
    graph = "method.tagger.graph."
    shared = [name for name in before if name.startswith(graph)]
    assert shared
    assert all(torch.allclose(after[name], before[name], atol=1e-6) for name in shared)


def test_init_from_another_kind_of_model_is_refused(colours: Path, tmp_path: Path):
    plain = fewtags.train(colours, out=tmp_path / "plain", method="plain", **TINY)
    with pytest.raises(UserError, match="nothing in it fits"):
        fewtags.train(colours, out=tmp_path / "new", method="hst", init=plain, **TINY)


def test_full_labels_ignores_known(colours: Path, tmp_path: Path):
    run = fewtags.train(colours, out=tmp_path / "full", method="full_labels", known=0.1, **TINY)
    assert RunFolder(run).metrics()["known"] == 1.0


def test_backbone_is_trained_when_asked(colours: Path, tmp_path: Path):
    tiny = TINY | {"freeze_backbone": False, "backbone_lr": 1e-2, "workers": 0, "epochs": 2, "trained_stages": 1}
    run = fewtags.train(colours, out=tmp_path / "tuned", method="hst", known=0.5, **tiny)
    again = fewtags.train(colours, out=tmp_path / "again", method="hst", known=0.5, **tiny)
    assert same_tensors(run, again)
    still = tiny | {"backbone_lr": 1e-12}
    frozen = fewtags.train(colours, out=tmp_path / "frozen", method="hst", known=0.5, **still)
    one, two = (load_file(folder / "model.safetensors") for folder in (run, frozen))
    changed = {name for name in one if name.startswith("backbone.") and not torch.allclose(one[name], two[name])}
    assert any("layer4" in name for name in changed)
    assert not any("layer1" in name or "conv1" in name.split(".")[2:3] for name in changed)


def test_last_stages_are_trained_on_cached_maps_of_the_others(colours: Path, tmp_path: Path):
    """Only they change; and images read anew score as those that were cached, to what 16 bits leave."""
    tiny = TINY | {"freeze_backbone": False, "cache_frozen_stages": True, "backbone_lr": 1e-2, "epochs": 2}
    run = fewtags.train(colours, out=tmp_path / "tuned", method="hst", known=0.5, **tiny)
    again = fewtags.train(colours, out=tmp_path / "again", method="hst", known=0.5, **tiny)
    assert same_tensors(run, again)
    weights = load_file(run / "model.safetensors")
    untrained = resolved(Recipe(**tiny), torch.device("cpu"), {})
    before = {f"backbone.{name}": value for name, value in make_backbone(untrained).state_dict().items()}
    changed = {name for name in before if not torch.equal(before[name], weights[name])}
    assert changed
    assert all("layer4" in name for name in changed)
    images, scored = RunFolder(run).predictions()
    read = fewtags.load(run).probabilities([colours / image for image in images])
    assert np.abs(scored - read).max() < 2e-3


def test_time_budget_limits_the_epochs(colours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from fewtags.training.timing import Expected

    monkeypatch.setattr(run_module, "expect", lambda *_: Expected(10.0, 1.0))
    recipe = Recipe(**TINY)
    folder = run_module.train(str(colours), recipe, tmp_path / "run", time_budget=25)
    assert folder.metrics()["epochs"] == 2
    with pytest.raises(UserError, match="raise --time-budget"):
        run_module.train(str(colours), recipe, tmp_path / "none", time_budget=5)


def test_a_loss_that_is_not_a_number_names_the_images(colours: Path, tmp_path: Path):
    with pytest.raises(UserError, match=r"images/\d+\.png"):
        fewtags.train(colours, out=tmp_path / "run", method="ssgrl", **(TINY | {"head_lr": 1e30, "clip_norm": 0}))


def test_no_training_images_is_an_error(tmp_path: Path):
    data = write_colours(tmp_path / "data", train=0, test=8)
    with pytest.raises(UserError, match="no training images"):
        fewtags.train(data, out=tmp_path / "run", **TINY)


def test_held_out_labels_are_unknown_to_training(colours: Path):
    from fewtags.data import open_data

    prepared = prepare_labels(open_data(str(colours)), Recipe(known=0.5, holdout=0.2))
    held, labels = prepared.known.held_out, prepared.known.labels
    assert held is not None
    assert held.any()
    assert not (held != 0)[labels != 0].any()
    share = (held != 0).sum() / ((held != 0).sum() + (labels != 0).sum())
    assert share == pytest.approx(0.2, abs=0.08)
    assert prepare_labels(open_data(str(colours)), Recipe(holdout=0)).known.held_out is None


def test_limit_draws_the_same_images_for_every_seed(colours: Path):
    from fewtags.data import open_data

    table = open_data(str(colours)).table.split("train")
    assert limited(table, None) is table
    few = limited(table, 10)
    assert len(few) == 10
    assert list(few.images) == sorted(few.images)
    draws = [prepare_labels(open_data(str(colours)), Recipe(limit=10, seed=seed)).train.images for seed in (0, 1)]
    assert draws[0] == draws[1]


def test_development_images_are_in_no_training_run_and_can_be_scored(colours: Path):
    from fewtags.data import open_data

    data = open_data(str(colours))
    everything = set(data.table.split("train").images)
    aside = {"development": 8}
    train = prepare_labels(data, Recipe(**aside)).train.images
    scored = prepare_labels(data, Recipe(**aside, score="development", limit=5, known=0.3)).test
    assert set(train) | set(scored.images) == everything
    assert len(scored) == 8
    assert scored.known.all()  # nothing of them is hidden
    both = [prepare_labels(data, Recipe(limit=10, development=count)).train.images for count in (0, 8)]
    assert both[0] == both[1]


def test_what_development_cannot_do_is_said(colours: Path):
    from fewtags.data import open_data

    data = open_data(str(colours))
    with pytest.raises(UserError, match="no images are set aside; set development"):
        prepare_labels(data, Recipe(score="development"))
    with pytest.raises(UserError, match="of 48 training images none is left"):
        prepare_labels(data, Recipe(development=48))


def test_folds_split_entries_in_half():
    folds = random_folds((200, 50), seed=0)
    assert folds.mean() == pytest.approx(0.5, abs=0.02)


def test_the_plain_view_always_comes_first():
    recipe = resolved(Recipe(views=("flip",)), torch.device("cpu"), {})
    assert recipe.views == ("plain", "flip")
    assert recipe.freeze_backbone is True


def test_epoch_line_says_what_matters():
    row = {
        "epoch": 3,
        "loss/total": 0.41234,
        "threshold/intra": 0.612,
        "pseudo/intra_made": 120,
        "pseudo/intra_right": 90,
        "seconds": 4.1,
    }
    assert epoch_line(row, 20) == "epoch 3/20  loss 0.4123  θ intra 0.612  filled intra 120 (75 % right)  4.1 s"


def test_history_rows_after_the_resumed_epoch_are_dropped(tmp_path: Path):
    files = EpochFiles(tmp_path, {})
    files.load_state_dict({"rows": [{"epoch": 1}, {"epoch": 2}]})
    assert files.state_dict() == {"rows": [{"epoch": 1}, {"epoch": 2}]}
