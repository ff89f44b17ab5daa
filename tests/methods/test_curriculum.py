from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import fewtags
from fewtags.methods.curriculum import Curriculum
from fewtags.training.callbacks import checkpoints
from tests.conftest import TINY
from tests.methods.test_methods import CATEGORIES, IMAGES, LATE, batch_of, labels_of, make, total
from tests.oracles import curriculum as oracle
from tests.training.test_run import same_tensors

STRATEGIES = ["threshold", "proportion", "positives", "agreement"]


def trained_a_little(labels: np.ndarray, **settings) -> Curriculum:
    """Heads with random weights, and the labelling after round 1 of 2 done on their scores."""
    method = make("curriculum", labels, **({"epochs": 2, "curriculum_threshold": 0.6} | settings))
    assert isinstance(method, Curriculum)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.copy_(3 * torch.randn(parameter.shape, generator=generator))
    batch = batch_of(labels)
    method.after_epoch(method.ends[0] - 1, lambda: [(batch, method(batch.inputs))])
    return method


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_labels_after_a_round_equal_the_loop(strategy):
    labels = labels_of()
    method = trained_a_little(labels, curriculum_strategy=strategy)
    outputs = method(batch_of(labels).inputs)
    first, second = outputs.get("first", outputs["logits"]), outputs.get("second", outputs["logits"])
    expected = oracle.label(strategy, first.tolist(), second.tolist(), labels.tolist(), 0.6, 0.5)
    assert method.completed.any()
    assert method.completed.tolist() == expected
    assert method.status() == {
        "curriculum/absents": float((np.array(expected) == -1).sum()),
        "curriculum/presents": float((np.array(expected) == 1).sum()),
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_loss_is_partial_bce_of_known_and_completed_labels(strategy):
    labels = labels_of()
    method, batch = trained_a_little(labels, curriculum_strategy=strategy), batch_of(labels)
    outputs = method(batch.inputs)
    step = method.losses(outputs, batch, LATE)
    union = np.where(labels != 0, labels, method.completed.numpy())
    read = outputs["logits"]
    if strategy == "agreement":
        read = torch.where(method.folds == 0, outputs["first"], outputs["second"])
        assert torch.allclose(outputs["logits"], (outputs["first"] + outputs["second"]) / 2)
    expected = oracle.proportional_bce(read.tolist(), union.tolist())
    assert step.terms["completed"].item() == pytest.approx(expected, rel=1e-5)
    assert torch.equal(step.proposals["own"], method.completed == 1)


def test_rows_are_found_by_image_index():
    labels = labels_of()
    method, batch = trained_a_little(labels), batch_of(labels)
    order = torch.randperm(IMAGES, generator=torch.Generator().manual_seed(0))
    batch.image_index = batch.image_index[order]
    proposed = method.losses(method(batch.inputs), batch, LATE).proposals["own"]
    assert torch.equal(proposed, (method.completed == 1)[order])


def test_completed_labels_take_the_place_of_weak_absents_in_full():
    labels = labels_of()
    method, batch = trained_a_little(labels), batch_of(labels, assume_absent=0.2)
    outputs = method(batch.inputs)
    completed = method.completed.numpy()
    targets = np.where(completed != 0, completed, batch.targets.numpy())
    weights = np.where((completed != 0) | (labels != 0), 1.0, 0.2)
    expected = oracle.proportional_bce(outputs["logits"].tolist(), targets.tolist(), weights.tolist())
    assert method.losses(outputs, batch, LATE).terms["completed"].item() == pytest.approx(expected, rel=1e-5)


def test_until_the_first_round_is_over_it_is_partial_bce_then_no_longer():
    labels = labels_of()
    batch = batch_of(labels)
    before, after = make("curriculum", labels), trained_a_little(labels)
    plain = make("partial_bce", labels)
    assert torch.equal(total(before, batch), total(plain, batch))
    plain.load_state_dict({name: after.state_dict()[name] for name in plain.state_dict()})
    assert total(after, batch).item() != pytest.approx(total(plain, batch).item(), rel=1e-3)


def test_unknown_entries_have_gradient_only_where_completed():
    labels = labels_of()
    method, batch = trained_a_little(labels), batch_of(labels)
    logits = method(batch.inputs)["logits"].detach().requires_grad_()
    method.losses({"logits": logits}, batch, LATE).terms["completed"].backward()
    assert logits.grad is not None
    assert torch.equal(logits.grad != 0, (batch.labels != 0) | (method.completed != 0))


def test_each_of_two_classifiers_learns_from_its_own_entries_alone():
    labels = labels_of()
    method, batch = trained_a_little(labels, curriculum_strategy="agreement"), batch_of(labels)
    outputs = {name: value.detach().requires_grad_() for name, value in method(batch.inputs).items()}
    method.losses(outputs, batch, LATE).terms["completed"].backward()
    taught = (batch.labels != 0) | (method.completed != 0)
    for fold, name in enumerate(("first", "second")):
        gradient = outputs[name].grad
        assert gradient is not None
        assert torch.equal(gradient != 0, taught & (method.folds == fold))


def test_all_known_leaves_nothing_to_label():
    labels = labels_of(known=1.0)
    method = trained_a_little(labels, curriculum_threshold=0.5)
    assert not method.completed.any()
    assert torch.allclose(total(method, batch_of(labels)), total_of_plain(method, labels))


def total_of_plain(method: Curriculum, labels: np.ndarray) -> torch.Tensor:
    """All known: g(1) = 1, and the loss is that of plain with the same weights."""
    plain = make("plain", labels)
    plain.load_state_dict({name: method.state_dict()[name] for name in plain.state_dict()})
    return total(plain, batch_of(labels))


def test_nothing_known_labels_what_it_is_sure_of_and_breaks_nothing():
    nothing = np.zeros((IMAGES, CATEGORIES), np.int8)
    fresh = make("curriculum", nothing)
    assert total(fresh, batch_of(nothing)).item() == 0
    assert trained_a_little(nothing).completed.any()


def test_every_round_decides_anew():
    labels = labels_of()
    method = trained_a_little(labels, epochs=3)
    first = method.completed.clone()
    with torch.no_grad():
        method.linear.weight.neg_()
        method.linear.bias.neg_()
    batch = batch_of(labels)
    method.after_epoch(1, lambda: [(batch, method(batch.inputs))])
    assert torch.equal(method.completed, -first)


def test_share_grows_from_round_to_round():
    labels, batch = labels_of(), batch_of()
    method = trained_a_little(labels, epochs=8, curriculum_strategy="proportion", curriculum_share=0.6)
    made = []
    for epoch in range(8):
        if method.wants_walk(epoch) and epoch < 7:
            method.after_epoch(epoch, lambda: [(batch, method(batch.inputs))])
            made.append(int((method.completed != 0).sum()))
    unknown = int((labels == 0).sum())
    assert made == [round(share * unknown) for share in (0.2, 0.4, 0.6)]


def train(colours: Path, out: Path, **settings) -> Path:
    tiny = TINY | {"epochs": 4, "curriculum_threshold": 0.55, "shortcut_lr": 0.3} | settings
    return fewtags.train(colours, out=out, method="curriculum", known=0.4, **tiny)


@pytest.mark.parametrize("strategy", ["threshold", "agreement"])
def test_an_interrupted_run_resumes_to_the_same_result(colours: Path, tmp_path: Path, strategy: str):
    """Cut off after epoch 3: what is resumed has to know the labels that were completed before."""
    whole = train(colours, tmp_path / "whole", curriculum_strategy=strategy)
    cut = train(colours, tmp_path / "cut", curriculum_strategy=strategy)
    saved = checkpoints(cut)
    assert len(saved) == 2
    os.remove(saved[-1])
    os.remove(cut / "model.safetensors")
    fewtags.train(colours, out=cut, resume=True)
    assert same_tensors(whole, cut)
    columns = ["epoch", "loss/total", "pseudo/own_made", "curriculum/absents", "curriculum/presents"]
    histories = [pd.read_csv(folder / "history.csv")[columns] for folder in (whole, cut)]
    pd.testing.assert_frame_equal(*histories, check_exact=True)
    made = histories[0]["pseudo/own_made"]
    assert made[0] == 0
    assert (made[2:] > 0).all()


def test_a_trained_model_carries_no_labels_of_images(colours: Path, tmp_path: Path):
    run = train(colours, tmp_path / "run")
    trained = load_file(run / "model.safetensors")
    assert trained["method.completed"].shape == (0, 4)
    os.remove(run / "model.safetensors")  # stopped between the last checkpoint and the end
    fewtags.train(colours, out=run, resume=True)
    again = load_file(run / "model.safetensors")
    assert all(torch.equal(trained[name], again[name]) for name in trained)
