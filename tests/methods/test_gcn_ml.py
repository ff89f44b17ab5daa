"""gcn_ml: graph convolution turns words into classifiers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fewtags.training.initial import category_axes
from tests.methods import graph_checks
from tests.methods.test_methods import CATEGORIES, CHANNELS, batch_of, labels_of, make
from tests.oracles import graph_convolution as oracle
from tests.oracles import label_graph

EDGES = {"edge_threshold": 0.3, "graph_smoothing": 3.0}


def test_scores_equal_the_node_loop():
    method, inputs = make("gcn_ml", shortcut=False, **EDGES).double().eval(), batch_of().inputs.double()
    graph = label_graph.conditional_graph(labels_of().tolist(), "smoothed", 3.0)
    matrix = oracle.adjacency(graph.tolist(), 0.3, 0.2)
    assert 0 < np.count_nonzero(matrix) < CATEGORIES**2
    weights = [layer.weight.detach().numpy() for layer in (method.convolutions.first, method.convolutions.second)]
    classifiers = oracle.convolutions(method.words.detach().numpy(), matrix, *weights) / CHANNELS**0.5
    logits = method(inputs)["logits"].detach().numpy()
    for image in range(3):
        pooled = [max(inputs[image, channel].flatten().tolist()) for channel in range(CHANNELS)]
        assert np.allclose(logits[image], [row @ pooled for row in classifiers], atol=1e-6)


def test_its_own_part_is_added_to_plain():
    """What plain learns is the shortcut here, beside classifiers made of words."""
    inputs = batch_of().inputs
    plain, own = make("plain").eval(), make("gcn_ml", shortcut_peak=0.0).eval()
    with torch.no_grad():
        plain.linear.weight.normal_()
        own.shortcut.weight.copy_(plain.linear.weight)
    added = own(inputs)["logits"] - plain(inputs)["logits"]
    assert torch.allclose(added, inputs.amax((2, 3)) @ own.classifiers().T, atol=1e-5)
    assert added.abs().max() > 1e-3


def test_each_of_its_settings_changes_the_scores():
    inputs = batch_of().inputs
    settings = [{}, {"edge_threshold": 0.5}, {"edge_weight": 0.6}, {"gcn_size": 9}, {"word_size": 4}]
    scores = [make("gcn_ml", **(EDGES | own)).eval()(inputs)["logits"].sum().item() for own in settings]
    assert len(set(scores)) == len(settings)


def test_given_words_stay_and_learned_ones_move():
    words = torch.randn(CATEGORIES, 5)
    given, learned = graph_checks.with_words("gcn_ml", words), make("gcn_ml")
    assert torch.equal(given.words, words)
    assert "words" not in dict(given.named_parameters())
    assert dict(learned.named_parameters())["words"].shape == (CATEGORIES, 6)


def test_categories_without_edges_and_with_equal_words_have_equal_classifiers():
    rows = graph_checks.with_words("gcn_ml", torch.ones(CATEGORIES, 5), edge_threshold=1.0).classifiers()
    assert torch.allclose(rows, rows[:1].expand_as(rows))


def test_rows_of_categories_are_declared():
    method = make("gcn_ml")
    state = method.state_dict()
    assert {name: state[name].shape[axes[0]] for name, axes in category_axes(method).items()} == {
        "words": CATEGORIES,
        "shortcut.weight": CATEGORIES,
        "shortcut.bias": CATEGORIES,
    }


def test_unknown_entries_have_exactly_zero_gradient():
    graph_checks.check_unknown_entries_have_exactly_zero_gradient("gcn_ml")


def test_nothing_known_breaks_nothing():
    graph_checks.check_nothing_known_breaks_nothing("gcn_ml")


def test_everything_learns():
    graph_checks.check_everything_learns("gcn_ml")


def test_the_shortcut_has_its_own_learning_rate_and_leads_at_first():
    graph_checks.check_the_shortcut_has_its_own_learning_rate_and_leads_at_first("gcn_ml")


def test_dropout_only_while_training():
    graph_checks.check_dropout_only_while_training("gcn_ml")


@pytest.mark.parametrize("given", [True, False], ids=["given", "learned"])
def test_a_loaded_run_gives_its_own_scores(colours: Path, tmp_path: Path, given: bool):
    graph_checks.check_a_loaded_run_gives_its_own_scores("gcn_ml", colours, tmp_path, given)
