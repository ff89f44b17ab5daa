"""Two runs side by side: to the last bit, or how far apart."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from fewtags.reproduction.outcome import compare_runs, same_bits, tensor_distance
from fewtags.training.folder import RunFolder


@pytest.fixture
def pair(trained: Path, tmp_path: Path) -> tuple[RunFolder, RunFolder]:
    """A run and a copy of it, to be changed."""
    shutil.copytree(trained, tmp_path / "copy")
    return RunFolder(trained), RunFolder(tmp_path / "copy")


def change_metrics(run: RunFolder, **changes: object) -> None:
    run.write_metrics(run.metrics() | changes)


def test_a_copy_is_identical_whatever_time_it_took(pair):
    change_metrics(pair[1], seconds=1e6, training_seconds=1e6, peak_memory_gib=99.0)
    history = pd.read_csv(pair[1].path / "history.csv")
    history.assign(seconds=1e6).to_csv(pair[1].path / "history.csv", index=False)
    outcome = compare_runs(*pair)
    assert outcome.identical
    assert outcome.weights.tensors > 10


def test_one_bit_of_one_weight_is_found(pair):
    file = pair[1].path / "model.safetensors"
    tensors = load_file(file)
    name = "method.tagger.classifier.rows"
    tensors[name].flatten().view(torch.int32)[3] ^= 1  # the last bit
    save_file(tensors, file)
    outcome = compare_runs(*pair)
    assert (outcome.weights.different, outcome.weights.where, outcome.metrics) == (1, name, {})
    assert 0 < outcome.weights.largest < 1e-6
    assert not outcome.identical


def test_a_missing_tensor_is_infinitely_far(pair):
    file = pair[1].path / "model.safetensors"
    tensors = load_file(file)
    del tensors["method.tagger.classifier.rows"]
    save_file(tensors, file)
    assert compare_runs(*pair).weights.largest == math.inf


def test_metrics_and_thresholds_that_differ_are_named(pair):
    first = pair[0].metrics()
    name = next(iter(first["per_category"]))
    nested = json.loads(json.dumps(first["per_category"]))
    nested[name] = 12.5
    change_metrics(pair[1], mAP=first["mAP"] + 0.25, per_category=nested)
    labels = pair[1].labels()
    moved = [labels.decision_thresholds[0] / 2, *labels.decision_thresholds[1:]]
    pair[1].write_labels(labels.model_copy(update={"decision_thresholds": moved}))
    outcome = compare_runs(*pair)
    assert set(outcome.metrics) == {"mAP", f"per_category.{name}", f"decision_threshold.{labels.categories[0]}"}
    assert outcome.metrics["mAP"] == (first["mAP"], first["mAP"] + 0.25)
    assert not outcome.identical


def test_the_first_epoch_that_differs_is_said(pair):
    history = pd.read_csv(pair[1].path / "history.csv")
    history.loc[1:, "loss/total"] += 1e-9
    history.to_csv(pair[1].path / "history.csv", index=False)
    assert compare_runs(*pair).first_epoch == 2
    history.iloc[:0].to_csv(pair[1].path / "history.csv", index=False)
    assert compare_runs(*pair).first_epoch == 1


def test_bits_and_distances():
    nan = torch.tensor([1.0, math.nan])
    assert same_bits(nan, nan.clone())
    assert not same_bits(torch.tensor(0.0), torch.tensor(-0.0))
    assert same_bits(torch.tensor(True), torch.tensor(True))
    assert not same_bits(torch.zeros(2), torch.zeros(2, dtype=torch.float64))
    assert tensor_distance(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 2.0])) == 0.5
    assert tensor_distance(nan, torch.tensor([1.0, 2.0])) == math.inf
    assert tensor_distance(torch.zeros(2), torch.zeros(3)) == math.inf
    assert tensor_distance(torch.zeros(0), torch.zeros(0)) == 0.0
