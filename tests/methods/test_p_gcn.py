"""p_gcn: graph convolution over categories gives the scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.methods import graph_checks
from tests.methods.test_methods import batch_of, labels_of, make
from tests.oracles import graph_convolution as oracle
from tests.oracles import label_graph

EDGES = {"edge_threshold": 0.3, "graph_smoothing": 3.0}


def test_scores_equal_the_node_loop():
    method, inputs = make("p_gcn", shortcut=False, **EDGES).double().eval(), batch_of().inputs.double()
    outputs, layers = method(inputs), method.tagger.convolutions
    graph = label_graph.conditional_graph(labels_of().tolist(), "smoothed", 3.0)
    matrix = oracle.adjacency(graph.tolist(), 0.3, 0.2)
    assert 0 < np.count_nonzero(matrix) < 36
    weights = [layer.weight.detach().numpy() for layer in (layers.first, layers.second)]
    for image in range(3):
        expected = oracle.convolutions(outputs["features"][image].detach().numpy(), matrix, *weights)
        assert np.allclose(outputs["logits"][image].detach().numpy(), expected[:, 0], atol=1e-6)


def test_it_reads_the_category_features_of_ssgrl():
    inputs = batch_of().inputs
    own, ssgrl = (make(name).eval()(inputs) for name in ("p_gcn", "ssgrl"))
    assert torch.equal(own["features"], ssgrl["features"])
    assert (own["logits"] - ssgrl["logits"]).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["sd", "sa"])
def test_a_score_depends_on_the_features_of_neighbours_and_of_no_others(kind: str):
    """Two layers: on neighbours of neighbours too. Without edges, on its own alone."""
    for settings in (EDGES, {"edge_threshold": 1.0}):
        tagger = make("p_gcn", category_features=kind, **settings).eval().tagger
        features = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(0)).requires_grad_()
        reached = (tagger.edges @ tagger.edges) != 0
        for category in range(6):
            (gradient,) = torch.autograd.grad(tagger.score(features)[0, category], features)
            assert torch.equal(gradient[0].abs().sum(1) != 0, reached[category])


def test_each_of_its_settings_changes_the_scores():
    inputs = batch_of().inputs
    settings = [{}, {"edge_threshold": 0.5}, {"edge_weight": 0.6}, {"gcn_size": 9}, {"category_features": "sa"}]
    scores = [make("p_gcn", **(EDGES | own)).eval()(inputs)["logits"].sum().item() for own in settings]
    assert len(set(scores)) == len(settings)


def test_unknown_entries_have_exactly_zero_gradient():
    graph_checks.check_unknown_entries_have_exactly_zero_gradient("p_gcn")


def test_nothing_known_breaks_nothing():
    graph_checks.check_nothing_known_breaks_nothing("p_gcn")


def test_everything_learns():
    graph_checks.check_everything_learns("p_gcn")


def test_the_shortcut_has_its_own_learning_rate_and_leads_at_first():
    graph_checks.check_the_shortcut_has_its_own_learning_rate_and_leads_at_first("p_gcn")


def test_dropout_only_while_training():
    graph_checks.check_dropout_only_while_training("p_gcn")


@pytest.mark.parametrize("given", [True, False], ids=["given", "learned"])
def test_a_loaded_run_gives_its_own_scores(colours: Path, tmp_path: Path, given: bool):
    graph_checks.check_a_loaded_run_gives_its_own_scores("p_gcn", colours, tmp_path, given)
