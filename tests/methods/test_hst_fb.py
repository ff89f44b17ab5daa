"""hst_fb: hst's terms and sarb's, on one set of prototypes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fewtags.training.prepare import random_folds
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


def test_terms_are_those_of_hst_and_of_blending():
    batch = batch_of()
    hst, both = (with_prototypes(make(name, threshold=0.3), batch) for name in ("hst", "hst_fb"))
    one, two = (method.losses(method(batch.inputs), batch, LATE) for method in (hst, both))
    assert set(two.terms) == set(one.terms) | {"blend_instance", "blend_prototype"}
    assert all(torch.equal(two.terms[name], one.terms[name]) for name in one.terms)
    assert all(torch.equal(two.proposals[name], one.proposals[name]) for name in one.proposals)
    assert set(both.losses(both(batch.inputs), batch, EARLY).terms) == set(one.terms)
    weights = both.loss_weights(LATE)
    assert weights["blend_instance"] == weights["blend_prototype"] == 1
    assert weights["intra"] == hst.loss_weights(LATE)["intra"]


def test_gradients_differ_from_those_of_hst():
    batch, gradients = batch_of(), []
    for name in ("hst", "hst_fb"):
        method = with_prototypes(make(name, threshold=0.3), batch)
        total(method, batch).backward()
        gradients.append(method.tagger.classifier.rows.grad)
    assert not torch.allclose(*gradients)


@pytest.mark.parametrize(
    "settings", [{}, {"threshold_labels": "crossfit"}, {"cross_source": "instances"}, {"cross": False}], ids=str
)
def test_prototypes_are_hsts_unless_it_has_none(settings):
    labels = labels_of()
    folds = random_folds(labels.shape, 0) if settings.get("threshold_labels") == "crossfit" else None
    batch = batch_of(labels, folds=folds)
    method = make("hst_fb", **settings)
    torch.nn.init.normal_(method.tagger.shortcut.weight)  # it starts at 0
    method.losses(method(batch.inputs), batch, LATE)  # fills an instance bank
    with_prototypes(method, batch)
    assert (method.blending.prototypes is not None) is (settings == {"cross": False})
    method.losses(method(batch.inputs), batch, LATE).terms["blend_prototype"].backward()
    assert method.blending.prototype_logit.grad != 0
    assert method.wants_walk(0)
    assert method.blending.typical_beside.any()


def test_all_known_leaves_nothing_to_blend():
    labels = labels_of(known=1.0)
    batch = batch_of(labels)
    method = with_prototypes(make("hst_fb", labels=labels), batch)
    terms = method.losses(method(batch.inputs), batch, LATE).terms
    assert torch.allclose(terms["blend_instance"], terms["known"], atol=1e-6)
    assert torch.allclose(terms["blend_prototype"], terms["known"], atol=1e-6)


def test_nothing_known_costs_nothing():
    nothing = np.zeros((IMAGES, CATEGORIES), np.int8)
    batch = batch_of(nothing)
    method = make("hst_fb", labels=nothing)
    step = method.losses(method(batch.inputs), batch, LATE)
    assert all(float(term.detach()) == 0 for term in step.terms.values())


def test_a_stopped_run_resumes_to_the_same_result(colours: Path, tmp_path: Path):
    history = resumes_to_the_same_result("hst_fb", colours, tmp_path)
    assert (history[["blend/instances", "blend/prototypes"]].iloc[-1] != 0.5).all()
