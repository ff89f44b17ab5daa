"""kggr: classifiers out of a second label graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.methods import graph_checks
from tests.methods.test_methods import batch_of, make, total
from tests.oracles import label_graph as oracle


def test_classifier_graph_equals_the_node_loop():
    tagger = make("kggr").double().tagger
    graph = tagger.row_graph
    graph.from_message.bias.data.normal_()  # gates half open
    weights = [
        p.detach().numpy()
        for p in (
            graph.from_message.weight,
            graph.from_message.bias,
            graph.gates_from_state.weight,
            graph.candidate_from_state.weight,
        )
    ]
    own, adjacency = tagger.classifier.rows.detach().numpy(), tagger.adjacency.numpy()
    expected = oracle.gated_graph(own, adjacency, 3, *weights)
    assert np.allclose(tagger.rows().detach().numpy(), expected)
    assert not np.allclose(expected, own)


def test_scores_are_made_with_the_rows_that_come_out_of_the_graph():
    method, inputs = make("kggr", shortcut=False).double().eval(), batch_of().inputs.double()
    tagger, outputs = method.tagger, method(inputs)
    states = tagger.graph(outputs["features"], tagger.adjacency).detach().numpy()
    join, bias = tagger.classifier.join, tagger.classifier.bias.detach().numpy()
    rows, features = tagger.rows().detach().numpy(), outputs["features"].detach().numpy()
    weights = join.weight.detach().numpy(), join.bias.detach().numpy(), rows, bias
    for image in range(3):
        expected = oracle.classifier(states[image], features[image], *weights)
        assert np.allclose(outputs["logits"][image].detach().numpy(), expected)


def test_without_graph_steps_it_is_ssgrl():
    inputs = batch_of().inputs
    kggr, ssgrl = (make(name, graph_steps=0).eval()(inputs)["logits"] for name in ("kggr", "ssgrl"))
    assert torch.equal(kggr, ssgrl)


def test_it_sets_out_near_ssgrl_and_leaves_it_as_the_gates_open():
    inputs = batch_of().inputs
    kggr, ssgrl = (make(name, shortcut=False).eval() for name in ("kggr", "ssgrl"))
    assert torch.equal(kggr(inputs)["features"], ssgrl(inputs)["features"])
    scores, near = ssgrl(inputs)["logits"], kggr(inputs)["logits"]
    kggr.tagger.row_graph.from_message.bias.data.zero_()
    far = kggr(inputs)["logits"]
    assert 0 < (near - scores).abs().mean() < 0.1 * scores.abs().mean() < (far - scores).abs().mean()


def test_a_step_of_training_parts_it_from_ssgrl():
    batch, moved = batch_of(), {}
    for name in ("kggr", "ssgrl"):
        method = make(name)
        optimizer = torch.optim.SGD(method.parameters(), lr=0.1)
        total(method, batch).backward()
        optimizer.step()
        moved[name] = method.tagger.classifier.rows.detach()
    assert not torch.allclose(moved["kggr"], moved["ssgrl"])


def test_a_label_of_one_category_teaches_the_classifiers_of_others():
    """Its score depends on their rows, through the graph; in ssgrl only on its own."""
    for name, shared in (("kggr", True), ("ssgrl", False)):
        method = make(name)
        method(batch_of().inputs)["logits"][:, 0].sum().backward()
        gradient = method.tagger.classifier.rows.grad
        assert gradient is not None
        assert gradient[0].any()
        assert bool(gradient[1:].any()) is shared


def test_unknown_entries_have_exactly_zero_gradient():
    graph_checks.check_unknown_entries_have_exactly_zero_gradient("kggr")


def test_nothing_known_breaks_nothing():
    graph_checks.check_nothing_known_breaks_nothing("kggr")


def test_everything_learns():
    graph_checks.check_everything_learns("kggr")


def test_the_shortcut_has_its_own_learning_rate_and_leads_at_first():
    graph_checks.check_the_shortcut_has_its_own_learning_rate_and_leads_at_first("kggr")


def test_dropout_only_while_training():
    graph_checks.check_dropout_only_while_training("kggr")


@pytest.mark.parametrize("given", [True, False], ids=["given", "learned"])
def test_a_loaded_run_gives_its_own_scores(colours: Path, tmp_path: Path, given: bool):
    graph_checks.check_a_loaded_run_gives_its_own_scores("kggr", colours, tmp_path, given)
