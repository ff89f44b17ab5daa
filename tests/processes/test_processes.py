"""One, two and four processes that do the same work together: same arithmetic, same model, one writer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from fewtags.images.cache import cached_features
from fewtags.methods import METHODS
from fewtags.nn.backbones import build_backbone
from fewtags.recipe import Recipe
from fewtags.training.run import train
from tests.conftest import write_colours
from tests.processes.tasks import RUN, Squares, half_done

SIZES = (2, 4)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workshop")
    write_colours(folder / "data")
    write_colours(folder / "unlabelled", train=20, test=20, seed=1, unknown=0.6)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        environment.pop(name, None)
    answer = subprocess.run(
        [sys.executable, "-m", "tests.processes.workshop", str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    print(answer.stdout)
    return folder


@cache
def found(folder: Path, task: str, size: int, rank: int = 0) -> dict[str, Any]:
    return torch.load(folder / f"{task}-{size}-{rank}.pt", weights_only=False)


def assert_close(some: dict[str, torch.Tensor], others: dict[str, torch.Tensor], what: str) -> None:
    assert some.keys() == others.keys(), what
    for name, value in some.items():
        if value.numel():
            scale = max(1e-2, float(others[name].double().abs().max()))
            difference = float((value.double() - others[name].double()).abs().max())
            assert difference <= 1e-5 * scale, f"{what}: {name} differs by {difference:.1e}"


@pytest.mark.parametrize("size", SIZES)
def test_functions_over_all_processes(workshop: Path, size: int):
    for rank in range(size):
        here = found(workshop, "functions", size, rank)
        assert here["total"].tolist() == [size * (size + 1) / 2]
        assert (int(here["largest"]), int(here["smallest"])) == (size - 1, 0)
        rows = [[float(10 * r + k)] for r in range(size) for k in range(r + 1)]
        assert here["all_rows"].tolist() == rows == here["array"].tolist()
        assert (here["array"].dtype, here["nothing"].shape) == (np.float16, (0, 3))
        assert here["whole"].tolist() == [[1.0 + r] for r in range(size)]
        assert here["leaf"].tolist() == [[(rank + 1) * size * (size + 1) / 2]]  # what all ask of this row
        assert here["summed"].tolist() == [size * (size + 1) / 2]
        assert (int(here["first"]), here["said"], here["all"]) == (7, "from 0", list(range(size)))
    shares = [found(workshop, "functions", size, rank)["share"] for rank in range(size)]
    for place, count in enumerate((10, 10, 3, 0)):
        assert [row for share in shares for row in share[place]] == list(range(count))
    assert all(share[1].start % 4 == 0 for share in shares if len(share[1]))
    drawn = torch.cat([found(workshop, "functions", size, rank)["random"] for rank in range(size)])
    assert torch.equal(drawn, found(workshop, "functions", 1)["random"])  # as one process would draw


@pytest.mark.parametrize(("size", "when"), [(2, "warm-up"), (2, "later"), (4, "later")])
@pytest.mark.parametrize("name", METHODS)
def test_a_step_is_that_of_one_process_with_the_whole_batch(workshop: Path, name: str, when: str, size: int):
    """Gradients, the loss, and everything remembered: queues, banks, prototypes, thresholds, norms."""
    alone = found(workshop, "steps", 1)[f"{name} {when}"]
    assert float(alone["loss"]) > 0
    assert any(key.startswith("gradient/") and value.abs().max() > 1e-4 for key, value in alone.items())
    for rank in range(size):
        here = found(workshop, "steps", size, rank)[f"{name} {when}"]
        idle = [key for key in here if "blending" in key and key not in alone and not here[key].any()]
        assert_close({key: value for key, value in here.items() if key not in idle}, alone, f"{rank}/{size}")


def test_options_of_hst_too(workshop: Path):
    alone, together = found(workshop, "options", 1), found(workshop, "options", 2)
    assert len(alone) > 20
    for settings, values in alone.items():
        assert_close(together[settings], values, settings)


@pytest.mark.parametrize("size", SIZES)
def test_all_processes_remember_the_same_to_the_last_bit(workshop: Path, size: int):
    first = found(workshop, "steps", size)
    for rank in range(1, size):
        other = found(workshop, "steps", size, rank)
        for case, values in first.items():
            kept = {key: value for key, value in values.items() if not key.startswith("gradient/")}
            assert all(torch.equal(value, other[case][key]) for key, value in kept.items()), case


def test_features_are_cached_once_and_read_by_any_number(workshop: Path):
    alone = found(workshop, "cache", 1)
    opened = [found(workshop, "cache", 2, rank)["opened"] for rank in range(2)]
    assert sorted(opened[0] + opened[1], key=int) == [str(number) for number in range(150)]
    assert min(map(len, opened)) > 60
    assert [found(workshop, "cache", 4, rank)["opened"] for rank in range(4)] == [[]] * 4
    for size, rank in ((2, 0), (2, 1), (4, 3)):
        here = found(workshop, "cache", size, rank)
        assert here["shape"] == alone["shape"]
        for key in ("row", "view", "part", "all", "last"):
            np.testing.assert_array_equal(here[key], alone[key])
    torch.manual_seed(0)
    backbone, source = build_backbone("test_resnet", pretrained=False), Squares()
    settings: dict[str, Any] = {"size": 32, "views": ("plain", "crop1"), "seed": 0}
    names = [str(number) for number in range(150)]
    maps = cached_features(names, source, backbone, folder=workshop / "cache", **settings)
    assert source.opened == []
    np.testing.assert_array_equal(np.asarray(maps[:, 1]), alone["all"])
    with pytest.raises(IndexError):
        maps[150]


def model(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "model.safetensors")


def assert_same_run(one: Path, other: Path, tolerance: float = 1e-4) -> None:
    first, second = model(one), model(other)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.allclose(value.float(), second[name].float(), rtol=tolerance, atol=tolerance), name
    rows = [pd.read_csv(run / "history.csv").drop(columns="seconds") for run in (one, other)]
    assert list(rows[0].columns) == list(rows[1].columns)
    np.testing.assert_allclose(rows[0].to_numpy(float), rows[1].to_numpy(float), rtol=tolerance, atol=tolerance)
    scores = [json.loads((run / "metrics.json").read_text())["mAP"] for run in (one, other)]
    assert scores[0] == pytest.approx(scores[1], abs=1.0)


@pytest.mark.parametrize("size", SIZES)
def test_a_run_of_several_processes_is_that_of_one(workshop: Path, size: int):
    """Without dropout there is nothing by which they could differ but rounding."""
    assert_same_run(workshop / "runs" / f"by-{size}", workshop / "runs" / "by-1")


def test_a_run_of_one_process_goes_on_with_two(workshop: Path):
    assert_same_run(workshop / "runs" / "resumed", workshop / "runs" / "by-1")


def test_a_run_of_two_processes_goes_on_with_one(workshop: Path, tmp_path: Path):
    half_done(workshop / "runs" / "by-2", tmp_path / "run")
    train(str(workshop / "data"), Recipe(**RUN), tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", workshop / "runs" / "by-1")


@pytest.mark.parametrize("task", ["runs", "uses"])
@pytest.mark.parametrize("size", SIZES)
def test_one_process_writes(workshop: Path, task: str, size: int):
    assert found(workshop, task, size, 0)["written"]
    for rank in range(1, size):
        assert found(workshop, task, size, rank)["written"] == []


def names(run: Path) -> list[str]:
    return sorted(str(path.relative_to(run)) for path in run.rglob("*") if "tfevents" not in path.name)


@pytest.mark.parametrize("size", SIZES)
def test_predictions_and_completed_labels_are_those_of_one_process(workshop: Path, size: int):
    alone, here = workshop / "uses" / "1", workshop / "uses" / str(size)
    assert names(here) == names(alone)
    for file in ("tags.csv", "filled/labels.csv", "filled/suggestions.parquet"):
        assert (here / file).read_bytes() == (alone / file).read_bytes(), file
    assert len(pd.read_csv(here / "tags.csv")) > 20


def test_train_writes_its_report_after_the_others_have_left(workshop: Path):
    assert (workshop / "commands" / "report.html").is_file()
    assert found(workshop, "commands", 2, 1)["left"] == 1


def test_run_folders_hold_the_same_files(workshop: Path):
    assert names(workshop / "runs" / "by-4") == names(workshop / "runs" / "by-1")
