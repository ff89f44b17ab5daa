"""What each method is: its loss terms, what it learns from, and what its own part changes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from fewtags.batch import Batch
from fewtags.methods import METHODS, Setting
from fewtags.methods.base import Method, Moment
from fewtags.methods.hst import Hst
from fewtags.nn.backbone_classes import BackboneClasses
from fewtags.recipe import Recipe
from fewtags.training.data import Collate, KnownLabels
from fewtags.training.prepare import random_folds
from tests.conftest import TINY

CATEGORIES, CHANNELS, IMAGES = 6, 12, 20
LATE = Moment(epoch=99, progress=99.0)
EARLY = Moment(epoch=0, progress=0.0)


def labels_of(known: float = 0.5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((IMAGES, CATEGORIES)) < 0.4, 1, -1)
    return np.where(rng.random(values.shape) < known, values, 0).astype(np.int8)


def make(
    name: str = "hst", labels: np.ndarray | None = None, classes: BackboneClasses | None = None, **settings
) -> Method:
    labels = labels_of() if labels is None else labels
    simple = {"dropout": 0.0, "first_scores": "undecided", "threshold_labels": "all", "plausible_share": 0.0}
    recipe = Recipe(**(TINY | simple | settings))
    torch.manual_seed(0)
    names = tuple("abcdef"[:CATEGORIES])
    return METHODS[name](Setting(recipe, names, CHANNELS, torch.from_numpy(labels).float(), classes=classes))


def batch_of(labels: np.ndarray | None = None, **known) -> Batch:
    labels = labels_of() if labels is None else labels
    maps = torch.randn(len(labels), CHANNELS, 4, 4, generator=torch.Generator().manual_seed(1))
    return Collate(KnownLabels(labels, **known), 0)(([(row, 0) for row in range(len(labels))], maps))


def total(method: Method, batch: Batch, moment: Moment = LATE) -> torch.Tensor:
    step = method.losses(method(batch.inputs), batch, moment)
    weights = method.loss_weights(moment)
    return torch.stack([weights.get(name, 1.0) * term for name, term in step.terms.items()]).sum()


@pytest.mark.parametrize("name", METHODS)
def test_scores_have_one_column_per_category_and_every_method_has_a_summary(name):
    method = make(name)
    assert method(batch_of().inputs)["logits"].shape == (IMAGES, CATEGORIES)
    assert len(method.summary) > 20


@pytest.mark.parametrize("name", ["plain", "ssgrl", "full_labels"])
def test_unknown_entries_have_exactly_zero_gradient(name):
    method, batch = make(name), batch_of()
    logits = method(batch.inputs)["logits"].detach().requires_grad_()
    method.classification(logits, batch).backward()
    assert logits.grad is not None
    assert (logits.grad[batch.labels == 0] == 0).all()
    assert (logits.grad[batch.labels != 0] != 0).all()


def test_hst_gives_gradient_to_unknown_entries_only_where_it_proposes():
    method, batch = make(threshold=0.3), batch_of()
    outputs = method(batch.inputs)
    outputs["logits"].retain_grad()
    step = method.losses(outputs, batch, LATE)
    sum(step.terms[name] for name in ("known", "pseudo_intra", "pseudo_cross")).backward()
    proposed = step.proposals["intra"] | step.proposals["cross"]
    assert proposed.any()
    assert not proposed[batch.labels != 0].any()
    gradient = outputs["logits"].grad
    assert (gradient[(batch.labels == 0) & ~proposed] == 0).all()
    assert (gradient[proposed] < 0).all()  # towards present


def test_no_pseudo_labels_during_warm_up():
    method, batch = make(threshold=0.0), batch_of()
    early = method.losses(method(batch.inputs), batch, EARLY)
    assert not any(proposed.any() for proposed in early.proposals.values())
    assert torch.equal(early.terms["pseudo_intra"], early.terms["known"])
    late = method.losses(method(batch.inputs), batch, LATE)
    assert late.proposals["intra"].any()


def with_prototypes(method: Method, batch: Batch) -> Method:
    method.eval()
    method.after_epoch(0, lambda: [(batch, method(batch.inputs))])
    return method.train()


def test_an_entry_labelled_by_both_modules_counts_once():
    batch = batch_of()
    method = with_prototypes(make(threshold=-5.0), batch)
    proposals = method.losses(method(batch.inputs), batch, LATE).proposals
    assert proposals["intra"].any()
    assert proposals["cross"].any()
    assert not (proposals["intra"] & proposals["cross"]).any()


def test_pseudo_loss_is_over_the_union_or_over_the_pseudo_labels_alone():
    batch = batch_of()
    logits = torch.randn(IMAGES, CATEGORIES, generator=torch.Generator().manual_seed(3))
    proposed = (batch.labels == 0) & (logits > 0.5)
    union = np.where(proposed.numpy(), 1, batch.labels.numpy())
    for kind, used in (("union", union), ("own", proposed.numpy().astype(int))):
        cells = [
            np.log1p(np.exp(-used[b, c] * float(logits[b, c])))
            for b in range(IMAGES)
            for c in range(CATEGORIES)
            if used[b, c]
        ]
        method = make(pseudo_normalization=kind)
        assert float(method.pseudo_loss(logits, batch, proposed)) == pytest.approx(np.mean(cells), rel=1e-5)


def test_all_labels_known_leaves_nothing_to_propose():
    labels = labels_of(known=1.0)
    batch = batch_of(labels)
    method = with_prototypes(make(labels=labels, threshold=-5.0), batch)
    step = method.losses(method(batch.inputs), batch, LATE)
    assert not any(proposed.any() for proposed in step.proposals.values())
    assert torch.equal(step.terms["pseudo_intra"], step.terms["known"])


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_without_any_known_label_costs_nothing_and_breaks_nothing(name):
    nothing = np.zeros((IMAGES, CATEGORIES), np.int8)
    method, batch = make(name, labels=nothing), batch_of(nothing)
    loss = total(method, batch)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in method.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    "settings",
    [
        {"pair_targets": "three_valued"},
        {"pair_targets": "both_known"},
        {"pair_targets": "released"},
        {"pair_layers": "released"},
        {"pair_scores": "per_pair"},
        {"pair_loss": "bce"},
        {"pair_prior": False},
        {"evidence": "sum", "threshold": "global"},
        {"self_evidence": True},
        {"intra_source": "statistical"},
        {"cross_source": "instances"},
        {"prototype_similarity": "max"},
        {"prototype_metric": "euclidean"},
        {"absent_pairs": "include"},
        {"contrast_queue": 0},
        {"prototype_contrast": True},
        {"thresholds": "released"},
        {"thresholds": "falling"},
        {"threshold": "per_category"},
        {"threshold": 0.4},
        {"threshold_target": "precision:0.6"},
        {"threshold_target": "utility"},
        {"threshold_labels": "holdout"},
        {"threshold_labels": "crossfit"},
        {"dtl_gradient": "through"},
        {"known_normalization": "image"},
        {"known_normalization": "categories"},
        {"pseudo_normalization": "own"},
        {"ramp_transfer": True},
        {"category_features": "sa"},
        {"category_features": "sa", "cam_pooling": "avg"},
        {"graph": "released"},
        {"graph": "identity"},
        {"graph_steps": 1},
        {"shortcut": False},
        {"intra": False},
        {"cross": False},
        {"intra_weight": 0.0},
    ],
    ids=str,
)
def test_every_option_changes_what_hst_does(settings):
    """Two steps with a renewal of prototypes between: loss, evidence or proposals must differ from the default."""
    assert fingerprint() != fingerprint(**settings)


def fingerprint(**settings) -> list[float]:
    labels = labels_of()
    held = np.where(labels == 0, labels_of(seed=7), 0).astype(np.int8)
    folds = random_folds(labels.shape, 0) if settings.get("threshold_labels") == "crossfit" else None
    batch = batch_of(labels, held_out=held, folds=folds)
    method = make(labels=labels, **settings)
    optimizer = torch.optim.SGD(method.parameters(), lr=0.1)
    for _ in range(2):
        total(method, batch, Moment(99, 0.5)).backward()
        optimizer.step()
        optimizer.zero_grad()
        with_prototypes(method, batch)
    step = method.losses(method(batch.inputs), batch, LATE)
    found = [float(term.detach()) for term in step.terms.values()]
    found += [float(proposed.sum()) for proposed in step.proposals.values()]
    return [round(value, 6) for value in found + list(method.status().values())]


def test_threshold_loss_moves_thresholds_alone_unless_told_otherwise():
    batch = batch_of()
    for gradient, moves in (("theta_only", False), ("through", True)):
        method = with_prototypes(make(dtl_gradient=gradient), batch)
        terms = method.losses(method(batch.inputs), batch, LATE).terms
        (terms["threshold_intra"] + terms["threshold_cross"]).backward()
        assert method.intra.threshold.theta.grad != 0  # type: ignore[union-attr]
        touched = [p.grad is not None and bool(p.grad.any()) for p in method.tagger.parameters()]  # type: ignore[union-attr]
        assert any(touched) is moves


def test_threshold_moves_from_the_data_at_the_first_step_with_evidence():
    method, batch = make(), batch_of()
    assert isinstance(method, Hst)
    method.losses(method(batch.inputs), batch, EARLY).terms["threshold_intra"].backward()
    assert method.intra is not None
    assert float(method.intra.threshold.theta.grad) != 0  # type: ignore[arg-type]


def test_holdout_thresholds_need_held_out_labels():
    method, batch = make(threshold_labels="holdout"), batch_of()
    with pytest.raises(Exception, match="set holdout above 0"):
        method.losses(method(batch.inputs), dataclasses.replace(batch, held_out=None), LATE)


def test_prototypes_are_renewed_after_every_warm_up_epoch_then_every_five():
    method = make(epochs=20, warmup_share=0.25)
    assert [epoch + 1 for epoch in range(20) if method.wants_walk(epoch)] == [1, 2, 3, 4, 5, 10, 15, 20]


def test_ramp_grows_over_the_first_epoch():
    method = make(ramp_transfer=True, intra_weight=10.0)
    assert method.loss_weights(Moment(0, 0.25))["intra"] == pytest.approx(2.5)
    assert method.loss_weights(Moment(3, 3.2))["intra"] == pytest.approx(10)


def test_methods_do_not_give_identical_predictions_after_a_step():
    """Each method's own part changes what it learns."""
    batch = batch_of()
    seen = {}
    for name in METHODS:
        method = make(name, curriculum_threshold=0.5, **METHODS[name].settings)
        own = batch_of(assume_absent=method.recipe.assume_absent) if name == "assume_absent" else batch
        labels = labels_of(known=1.0)
        own = batch_of(labels) if name == "full_labels" else own
        with_prototypes(method, own)  # and curriculum's first labels
        optimizer = torch.optim.SGD(method.parameters(), lr=0.1)
        total(method, own).backward()
        optimizer.step()
        seen[name] = method.eval()(batch.inputs)["logits"].detach().sum().item()
    assert len({round(value, 5) for value in seen.values()}) == len(METHODS), seen
