"""sarb: what blending adds to ssgrl. The formulas are tested in tests/transfer/test_blending.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fewtags.losses.contrastive import contrastive
from fewtags.methods.sarb import Sarb
from tests.methods.resume import resumes_to_the_same_result
from tests.methods.test_methods import (
    CATEGORIES,
    EARLY,
    IMAGES,
    LATE,
    batch_of,
    labels_of,
    make,
    total,
    with_prototypes,
)


def test_known_labels_alone_equal_ssgrl():
    batch = batch_of()
    ssgrl, sarb = make("ssgrl"), make("sarb")
    expected = ssgrl.losses(ssgrl(batch.inputs), batch, LATE).terms["known"]
    terms = sarb.losses(sarb(batch.inputs), batch, LATE).terms
    assert torch.equal(terms["known"], expected)
    assert set(terms) == {"known", "contrast", "blend_instance", "blend_prototype"}


def test_nothing_is_blended_during_warm_up():
    method, batch = make("sarb"), batch_of()
    assert set(method.losses(method(batch.inputs), batch, EARLY).terms) == {"known", "contrast"}


@pytest.mark.parametrize("features", ["sd", "sa"])
def test_all_known_leaves_nothing_to_blend(features):
    labels = labels_of(known=1.0)
    batch = batch_of(labels)
    method = with_prototypes(make("sarb", labels=labels, category_features=features), batch)
    terms = method.losses(method(batch.inputs), batch, LATE).terms
    assert torch.allclose(terms["blend_instance"], terms["known"], atol=1e-6)
    assert torch.allclose(terms["blend_prototype"], terms["known"], atol=1e-6)


def test_nothing_known_costs_nothing():
    nothing = np.zeros((IMAGES, CATEGORIES), np.int8)
    batch = batch_of(nothing)
    method = with_prototypes(make("sarb", labels=nothing), batch)
    assert isinstance(method, Sarb)
    assert not method.blending.prototypes.available.any()
    loss = total(method, batch)
    loss.backward()
    assert float(loss.detach()) == 0
    assert all((p.grad == 0).all() for p in method.parameters() if p.grad is not None)


def test_prototypes_come_from_known_present_features():
    batch = batch_of()
    method = with_prototypes(make("sarb"), batch)
    assert method.blending.prototypes.counts.tolist() == (batch.labels == 1).sum(0).clamp(max=2).tolist()
    assert [epoch + 1 for epoch in range(20) if make("sarb", epochs=20).wants_walk(epoch)] == [
        *range(1, 6),
        *(10, 15, 20),
    ]


def test_each_level_changes_gradients_relative_to_ssgrl():
    batch, seen = batch_of(), []
    for settings in (
        {"blend_weight": 0.0},  # ssgrl
        {"blend_prototypes": False},
        {"blend_instances": False},
        {},
    ):
        method = with_prototypes(make("sarb", cross_weight=0.0, **settings), batch)
        torch.manual_seed(1)
        total(method, batch).backward()
        seen.append(method.tagger.classifier.rows.grad)
    ssgrl = make("ssgrl")
    total(ssgrl, batch).backward()
    assert torch.allclose(seen[0], ssgrl.tagger.classifier.rows.grad)
    assert not any(torch.allclose(one, other) for n, one in enumerate(seen) for other in seen[:n])


def test_contrastive_loss_is_that_of_hst():
    batch = batch_of()
    method = make("sarb", contrast_queue=0, cross_weight=0.3)
    outputs = method(batch.inputs)
    terms = method.losses(outputs, batch, EARLY).terms
    assert torch.equal(terms["contrast"], contrastive(outputs["features"], batch.labels))
    assert method.loss_weights(EARLY)["contrast"] == 0.3
    queued = make("sarb")
    first = [queued.losses(queued(batch.inputs), batch, EARLY).terms["contrast"] for _ in range(2)]
    assert not torch.equal(*first)  # the second batch meets the first in the queue


def test_shares_move_and_are_not_decayed():
    batch = batch_of()
    method = with_prototypes(make("sarb"), batch)
    optimizer = torch.optim.SGD(method.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        total(method, batch).backward()
        optimizer.step()
    status = method.status()
    assert status.keys() == {"blend/instances", "blend/prototypes"}
    assert all(0 < share < 1 and abs(share - 0.5) > 1e-4 for share in status.values())
    assert method.blending.instance_logit.ndim == 0  # what the optimiser does not decay


@pytest.mark.parametrize("settings", [{}, {"shortcut": False}, {"category_features": "sa"}], ids=str)
def test_logits_are_the_graphs_and_what_is_beside_it(settings):
    method, batch = make("sarb", **settings).eval(), batch_of()
    if method.tagger.shortcut is not None:
        torch.nn.init.normal_(method.tagger.shortcut.weight)  # it starts at 0
    outputs = method(batch.inputs)
    again = method.tagger.logits(outputs["features"], outputs["beside"])
    assert torch.equal(again, outputs["logits"])
    assert bool(outputs["beside"].any()) is (settings != {"shortcut": False})


def test_a_stopped_run_resumes_to_the_same_result(colours: Path, tmp_path: Path):
    history = resumes_to_the_same_result("sarb", colours, tmp_path)
    assert (history["blend/instances"].iloc[1:] != 0.5).all()
    assert history["loss/blend_prototype"].isna().tolist() == [True, False, False]
