"""What holds for every method: it trains, predicts, reloads, and learns nothing from labels it must not know."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewtags
from fewtags.labels.hide import hide
from fewtags.methods import METHODS
from fewtags.recipe import Recipe
from fewtags.training.folder import RunFolder
from tests.conftest import TINY, write_colours
from tests.training.test_run import same_tensors

KNOWN, SEED = 0.4, 5
TABLES = """
plain assume_absent plain_pl full_labels partial_bce asl curriculum
gcn_ml p_gcn ssgrl ssgrl_pl kggr sst sarb hst hst_fb
"""
OWN = {"curriculum_threshold": 0.55, "threshold": 0.3, "shortcut_lr": 0.1}
"""So that every method makes pseudo labels within three epochs."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_colours(tmp_path_factory.mktemp("every") / "colours")


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Trained when first asked for."""
    folder = tmp_path_factory.mktemp("runs")

    class Trained(dict[str, Path]):
        def __missing__(self, method: str) -> Path:
            self[method] = train(data, folder / method, method)
            return self[method]

    return Trained()


def train(data: Path, out: Path, method: str) -> Path:
    return fewtags.train(data, out=out, method=method, known=KNOWN, seed=SEED, **(TINY | OWN))


def flipped(data: Path, folder: Path, known: float) -> Path:
    """A copy in which every hidden training label and every test label is turned around."""
    folder.mkdir()
    (folder / "images").symlink_to(data / "images")
    table = pd.read_csv(data / "labels.csv")
    values, train_rows = table.iloc[:, 2:].to_numpy(), (table["split"] == "train").to_numpy()
    hidden = np.ones_like(values, dtype=bool)
    hidden[train_rows] = hide(np.where(values[train_rows] == 1, 1, -1).astype(np.int8), known, SEED) == 0
    table.iloc[:, 2:] = np.where(hidden, 1 - values, values)
    table.to_csv(folder / "labels.csv", index=False)
    return folder


@pytest.mark.parametrize("name", METHODS)
def test_trains_evaluates_predicts_and_reloads(name: str, data: Path, runs: dict[str, Path]):
    run, image = runs[name], data / "images" / "050.png"
    history = pd.read_csv(run / "history.csv")
    assert len(history) == TINY["epochs"]
    assert np.isfinite(history["loss/total"]).all()
    one, two = (fewtags.load(run).probabilities([image]) for _ in range(2))
    assert one.shape == (1, 4)
    assert np.array_equal(one, two)
    scores = fewtags.evaluate(run, data)
    assert scores["mAP"] == pytest.approx(RunFolder(run).metrics()["mAP"], abs=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_hidden_and_test_labels_never_reach_training(name: str, data: Path, runs: dict[str, Path], tmp_path: Path):
    other = flipped(data, tmp_path / "flipped", METHODS[name].settings.get("known", KNOWN))
    again = train(other, tmp_path / "again", name)
    assert same_tensors(runs[name], again)
    thresholds = [RunFolder(run).labels().decision_thresholds for run in (runs[name], again)]
    assert thresholds[0] == thresholds[1]
    assert RunFolder(runs[name]).metrics()["mAP"] != RunFolder(again).metrics()["mAP"]  # the flip is evaluated


@pytest.mark.parametrize("name", METHODS)
def test_pseudo_labels_are_logged_under_the_names_declared(name: str, runs: dict[str, Path]):
    columns = pd.read_csv(runs[name] / "history.csv").columns
    logged = re.findall(r"pseudo/(\w+)_made", " ".join(columns))
    declared = fewtags.load(runs[name]).method.modules_with_proposals
    assert sorted(logged) == sorted(declared)


def test_methods_come_in_the_order_of_the_tables_and_each_has_a_recipe():
    assert list(METHODS) == [name for name in TABLES.split() if name in METHODS]
    for name in METHODS:
        assert Recipe.load(name).method == name


def test_each_method_has_a_section_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    assert re.findall(r"^## `(\w+)`$", page, re.MULTILINE) == list(METHODS)
