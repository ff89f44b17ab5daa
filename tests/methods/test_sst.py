"""sst: the falling threshold, the bank, and what differs from hst."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fewtags.methods import METHODS
from fewtags.methods.base import Moment
from fewtags.recipe import Recipe
from fewtags.transfer.prototypes import InstanceBank
from fewtags.transfer.thresholds import FallingThreshold, falling_threshold
from tests.methods.resume import resumes_to_the_same_result
from tests.methods.test_methods import LATE, batch_of, make, total

SETTINGS = METHODS["sst"].settings


def test_threshold_falls_from_095_at_epoch_6_to_075_at_epoch_14_of_20():
    recipe = Recipe(epochs=20)
    found = {epoch: falling_threshold(recipe, epoch - 1) for epoch in range(1, 21)}
    expected = {1: 0.95, 5: 0.95, 6: 0.95, 7: 0.925, 10: 0.85, 13: 0.775, 14: 0.75, 15: 0.75, 20: 0.75}
    assert {epoch: found[epoch] for epoch in expected} == pytest.approx(expected)


def test_the_fall_is_scaled_with_the_epochs():
    recipe = Recipe(epochs=8)  # 2 of them warm-up, 0.0625 an epoch
    found = [falling_threshold(recipe, epoch) for epoch in range(8)]
    assert found == pytest.approx([0.95, 0.95, 0.95, 0.8875, 0.825, 0.7625, 0.75, 0.75])


def test_settings_of_the_schedule_are_followed():
    recipe = Recipe(epochs=10, warmup_share=0.0, threshold_start=0.9, threshold_fall=0.1, threshold_floor=0.2)
    assert [falling_threshold(recipe, epoch) for epoch in (0, 1, 3, 4, 9)] == pytest.approx(
        [0.9, 0.7, 0.3, 0.2, 0.2]
    )


def test_both_modules_share_the_threshold_and_nothing_teaches_it():
    method, batch = make("sst", epochs=20, **SETTINGS), batch_of()
    for epoch, expected in ((5, 0.95), (9, 0.85), (19, 0.75)):
        step = method.losses(method(batch.inputs), batch, Moment(epoch, float(epoch)))
        assert method.status() == pytest.approx({"threshold/intra": expected, "threshold/cross": expected})
    assert not [name for name in step.terms if name.startswith("threshold")]
    assert set(step.terms) == {"known", "intra", "pseudo_intra", "cross", "pseudo_cross"}
    for transfer in method.transfers.values():
        assert isinstance(transfer.threshold, FallingThreshold)
        assert not list(transfer.threshold.parameters())
    trained = [p for group in method.parameter_groups() for p in group.parameters]
    assert len(trained) == len(list(method.parameters()))


def test_evidence_at_the_threshold_passes_and_only_where_there_is_some():
    threshold = FallingThreshold(3, Recipe(epochs=20))
    threshold.start_epoch(9)
    evidence = torch.tensor([[0.84, 0.8501, 0.95]])
    assert threshold.decide(evidence, torch.tensor([[True, True, True]])).tolist() == [[False, True, True]]
    assert threshold.decide(evidence, torch.tensor([[True, True, False]])).tolist() == [[False, True, False]]


def test_the_threshold_in_force_is_saved():
    threshold, copy = FallingThreshold(3, Recipe()), FallingThreshold(3, Recipe())
    threshold.start_epoch(19)
    copy.load_state_dict(threshold.state_dict())
    assert copy.value().tolist() == pytest.approx([0.75] * 3)


def test_one_head_and_one_bank_of_the_newest_100_without_walks():
    method = make("sst", **SETTINGS)
    assert len(method.intra.heads) == len(method.cross.references) == 1
    bank = method.cross.references[0]
    assert isinstance(bank, InstanceBank)
    assert bank.vectors.shape[1] == 100
    assert not any(method.wants_walk(epoch) for epoch in range(20))
    batch = batch_of()
    method.losses(method(batch.inputs), batch, LATE)
    assert bank.counts.tolist() == (batch.labels == 1).sum(0).tolist()
    method.eval().after_epoch(0, lambda: [(batch, method(batch.inputs))])  # does no harm


def test_a_walk_is_made_where_prototypes_need_it():
    method = make("hst", thresholds="falling", epochs=20)
    assert [epoch + 1 for epoch in range(20) if method.wants_walk(epoch)] == [1, 2, 3, 4, 5, 10, 15, 20]
    assert method.walkers == [method.cross]
    assert not make("hst", thresholds="falling", cross=False).wants_walk(0)


def test_pseudo_labels_follow_the_schedule():
    """A lower threshold fills more, and only unknown entries."""
    batch, counts = batch_of(), []
    for start in (0.95, 0.5, 0.1):
        method = make("sst", threshold_start=start, threshold_floor=0.05, **SETTINGS)
        method.losses(method(batch.inputs), batch, LATE)  # fills the bank
        proposals = method.losses(method(batch.inputs), batch, Moment(1, 1.0)).proposals
        assert not any(proposed[batch.labels != 0].any() for proposed in proposals.values())
        counts.append(sum(int(proposed.sum()) for proposed in proposals.values()))
    assert counts[0] < counts[1] < counts[2]


def test_gradients_differ_from_those_of_hst():
    gradients = []
    for name in ("hst", "sst"):
        method, batch = make(name, threshold=0.3, **METHODS[name].settings), batch_of()
        total(method, batch).backward()
        gradients.append(method.tagger.classifier.rows.grad)
    assert not torch.allclose(*gradients)


def test_a_stopped_run_resumes_to_the_same_result(colours: Path, tmp_path: Path):
    run = resumes_to_the_same_result("sst", colours, tmp_path, threshold_start=0.5, threshold_floor=0.1)
    assert list(run["threshold/cross"]) == pytest.approx([0.5, 0.5, 0.5 - 0.025 * 20 / 3])
