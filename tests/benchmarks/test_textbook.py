"""The paper's formulas, every pair and place materialised, give what fewtags gives: numbers and gradients."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks import textbook
from benchmarks.textbook import Textbook
from benchmarks.unfold import unfolded
from benchmarks.workload import AS_PRINTED, LATE, TINY, make_batch, make_method, noise, total, weighted
from fewtags.batch import Batch
from fewtags.losses.contrastive import contrastive
from fewtags.methods.hst import Hst
from fewtags.training.data import Collate, KnownLabels
from fewtags.transfer.intra import intra_evidence

CATEGORIES, IMAGES, SIDE, CHANNELS = 6, 4, 3, 12


def method_of(**settings) -> Hst:
    """With thresholds amid the evidence, so that each module proposes some labels."""
    method = make_method(CATEGORIES, CHANNELS, **(TINY | AS_PRINTED | settings))
    for part, low in ((method.intra, 0.481), (method.cross, 0.01)):
        part.threshold.theta.data.fill_(low)
    return method


def batch_of(known: float = 0.5) -> Batch:
    """Many labels are present, so that every kind of pair occurs."""
    batch = make_batch(IMAGES, CATEGORIES, SIDE, CHANNELS, known)
    flip = noise(IMAGES, CATEGORIES, seed=5) > 0
    labels = torch.where(flip, batch.labels.abs(), batch.labels).numpy()
    return Collate(KnownLabels(labels), 0)(([(row, 0) for row in range(IMAGES)], batch.inputs))


def close(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.detach().abs().max()))


def test_imports_nothing_from_fewtags():
    tree = ast.parse(Path(textbook.__file__).read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not [node for node in imported if "fewtags" in ast.unparse(node)]


@pytest.mark.parametrize("messages", ["materialised", "product"])
def test_features_and_logits(messages):
    method, batch = method_of(), batch_of()
    outputs = method(batch.inputs)
    features, logits = unfolded(method, messages).forward(batch.inputs)
    close(outputs["features"], features)
    close(outputs["logits"], logits)


def test_pair_scores_and_evidence():
    method, batch = method_of(), batch_of()
    features = noise(IMAGES, CATEGORIES, TINY["feature_size"])
    rows = batch.pair_images, batch.pair_given
    ours = torch.sigmoid(method.intra.pair_logits(0, features, *rows, batch.labels, method.tagger.adjacency))
    theirs = textbook.pair_probabilities(features, unfolded(method).pairs)
    close(ours, theirs[batch.pair_images, :, batch.pair_given])
    evidence, available = intra_evidence(ours, *rows, batch.labels)
    expected, there = textbook.intra_evidence(theirs, batch.labels)
    close(evidence, expected)
    assert torch.equal(available, there)


def test_similarity_is_the_mean_of_the_cosines_that_are_there():
    method = method_of()
    reference = method.cross.references[0]
    reference.counts.copy_(torch.tensor([3, 2, 1, 0, 3, 3]))
    for category, count in enumerate(reference.counts):
        reference.vectors[category, count:] = 0
    features = noise(IMAGES, CATEGORIES, TINY["feature_size"])
    found = reference.similarity(features)
    close(found, textbook.prototype_similarity(features, reference.vectors, reference.counts))
    assert (found[:, 3] == 0).all()


@pytest.mark.parametrize("queue", [0, 5])
def test_contrast_over_all_pairs_of_images(queue):
    batch = batch_of()
    features = noise(IMAGES, CATEGORIES, TINY["feature_size"])
    partners = (noise(CATEGORIES, queue, 16, seed=2), noise(CATEGORIES, queue, seed=3).sign()) if queue else ()
    close(contrastive(features, batch.labels, *partners), textbook.contrastive(features, batch.labels, *partners))


@pytest.mark.parametrize("known", [0.0, 0.5, 1.0])
def test_loss_terms_and_gradients(known):
    """Nothing known, some, all: every term, and the gradient of every trained weight and of the maps."""
    method, batch = method_of(), batch_of(known)
    book, maps = unfolded(method), batch.inputs.clone().requires_grad_()
    terms = book.terms(*book.forward(maps), batch.labels)
    weighted(terms, method).backward()
    batch.inputs.requires_grad_()
    ours = method.losses(method(batch.inputs), batch, LATE).terms
    assert set(ours) == set(terms)
    for name, term in terms.items():
        close(ours[name], term)
    total(method, batch).backward()
    close(batch.inputs.grad, maps.grad)
    expected = folded_gradients(book)
    assert set(expected) == {name for name, p in method.named_parameters() if p.requires_grad}
    for name, parameter in method.named_parameters():
        if parameter.requires_grad:
            close(parameter.grad, expected[name])


def test_terms_are_all_there_and_not_zero():
    """The comparison above would say little of terms that are 0, or of labels nobody proposes."""
    method, batch = method_of(), batch_of()
    step = method.losses(method(batch.inputs), batch, LATE)
    assert all(float(term.detach()) > 0 for term in step.terms.values())
    assert all(proposed.any() for proposed in step.proposals.values())


def folded_gradients(book: Textbook) -> dict[str, Tensor]:
    """Gradients of the textbook's weights, put together as fewtags holds its own."""
    sd, graph, pairs = (_gradients(part) for part in (book.decoupling, book.graph, book.pairs))
    attend = book.decoupling.fused_to_score.detach()
    halves = pairs["second"].chunk(2, dim=1)
    found = {
        "tagger.category_features.words": sd["words"],
        "tagger.category_features.reduce.weight": sd["convolution"],
        "tagger.category_features.norm.weight": sd["norm_scale"],
        "tagger.category_features.norm.bias": sd["norm_shift"],
        "tagger.category_features.place_to_joint.weight": sd["place_to_joint"],
        "tagger.category_features.word_to_joint.weight": sd["word_to_joint"],
        # w = f_a P, so ∂P = f_aᵀ ∂w
        "tagger.category_features.joint_to_score.weight": attend @ sd["joint_to_fused"] / attend.square().sum(),
        "tagger.graph.from_message.weight": _stacked(graph, "message"),
        "tagger.graph.from_message.bias": _stacked(graph, "bias"),
        "tagger.graph.gates_from_state.weight": torch.cat([graph["update_state"], graph["reset_state"]]),
        "tagger.graph.candidate_from_state.weight": graph["candidate_state"],
        "intra.heads.0.reduce.weight": pairs["reduce"],
        "intra.heads.0.reduce.bias": pairs["reduce_bias"],
        "intra.heads.0.asked_half.weight": halves[0],
        "intra.heads.0.given_half.weight": halves[1],
        "intra.heads.0.asked_half.bias": pairs["second_bias"],
        "intra.heads.0.score": pairs["score"][0],
        "intra.heads.0.score_bias": pairs["score_bias"][0],
    }
    found |= {
        f"tagger.classifier.{name}": g for name, g in _gradients(book.classifier).items() if "join" not in name
    }
    found["tagger.classifier.join.weight"] = book.classifier.join.grad
    found["tagger.classifier.join.bias"] = book.classifier.join_bias.grad
    for name, part in (("intra", book.intra), ("cross", book.cross)):
        found |= {f"{name}.threshold.{role}": gradient for role, gradient in _gradients(part).items()}
    return found


def _gradients(part: textbook.Part) -> dict[str, Tensor]:
    return {name: tensor.grad for name, tensor in part.tensors().items()}


def _stacked(graph: dict[str, Tensor], kind: str) -> Tensor:
    return torch.cat([graph[f"{gate}_{kind}"] for gate in ("update", "reset", "candidate")])
