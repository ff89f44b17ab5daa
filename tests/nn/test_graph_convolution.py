import numpy as np
import pytest
import torch

from fewtags.nn.graph_convolution import (
    GraphConvolutions,
    convolution_adjacency,
    reweighted,
    symmetrically_normalised,
)
from fewtags.nn.label_graph import conditional_graph
from tests.oracles import graph_convolution as oracle


def conditional(categories=7, seed=0):
    """P(j | i) without a diagonal; the last category goes with none, and the first with all."""
    graph = np.random.default_rng(seed).random((categories, categories)).astype(np.float32)
    graph[-1], graph[0] = 0.1, 0.9
    np.fill_diagonal(graph, 0)
    return torch.from_numpy(graph)


@pytest.mark.parametrize("weight", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.9, 1.0])
def test_adjacency_equals_the_loop(threshold, weight):
    graph = conditional()
    found = convolution_adjacency(graph, threshold, weight)
    expected = oracle.adjacency(graph.double().tolist(), float(np.float32(threshold)), weight)
    assert np.allclose(found.numpy(), expected, atol=1e-6)


def test_neighbours_weigh_their_share_and_the_category_the_rest():
    edges = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.8, 0.0], [0.0, 0.0, 0.8]])
    assert torch.allclose(reweighted(edges, 0.2), expected)


def test_an_edge_starts_exactly_at_the_threshold():
    graph = torch.tensor([[0.0, 0.4], [0.39, 0.0]])
    assert (convolution_adjacency(graph, 0.4, 0.2) > 0).tolist() == [[True, True], [False, True]]


def test_normalisation_keeps_a_symmetric_matrix_symmetric_and_is_not_a_row_mean():
    weights = torch.tensor([[1.0, 3.0], [3.0, 13.0]])
    expected = torch.tensor([[1 / 4, 3 / 8], [3 / 8, 13 / 16]])
    assert torch.allclose(symmetrically_normalised(weights), expected)


@pytest.mark.parametrize("weight", [0.2, 1.0])
def test_where_nothing_is_known_each_category_keeps_itself(weight):
    graph = conditional_graph(np.zeros((5, 4), np.int8))
    assert torch.allclose(convolution_adjacency(graph, 0.4, weight), torch.eye(4))


@pytest.mark.parametrize("weight", [0.2, 1.0])
def test_a_category_without_edges_keeps_its_own_state(weight):
    adjacency = convolution_adjacency(conditional(), 0.4, weight)
    assert torch.isfinite(adjacency).all()
    assert torch.allclose(adjacency[-1], torch.eye(7)[-1])


def test_the_graph_without_coupling_gives_the_identity():
    graph = conditional_graph(np.ones((5, 4)), "identity")
    assert torch.allclose(convolution_adjacency(graph, 0.4, 0.2), torch.eye(4))


def test_layers_equal_the_node_loop():
    torch.manual_seed(0)
    module = GraphConvolutions(5, 8, 3, dropout=0.5).double().eval()
    states, adjacency = torch.randn(2, 7, 5, dtype=torch.float64), convolution_adjacency(conditional(), 0.4, 0.2)
    found = module(states, adjacency.double()).detach().numpy()
    weights = [layer.weight.detach().numpy() for layer in (module.first, module.second)]
    for image in range(2):
        expected = oracle.convolutions(states[image].numpy(), adjacency.double().tolist(), *weights)
        assert found[image].shape == (7, 3)
        assert np.allclose(found[image], expected)


def test_starting_small_scales_what_comes_out():
    torch.manual_seed(0)
    module, states, adjacency = GraphConvolutions(5, 8, 3), torch.randn(7, 5), torch.eye(7)
    before = module(states, adjacency)
    module.start_small()
    assert torch.allclose(module(states, adjacency), 0.1 * before, atol=1e-6)


def test_dropout_only_while_training():
    torch.manual_seed(0)
    module, states, adjacency = GraphConvolutions(5, 8, 3, dropout=0.5), torch.randn(7, 5), torch.eye(7)
    assert not torch.equal(module(states, adjacency), module(states, adjacency))
    module.eval()
    assert torch.equal(module(states, adjacency), module(states, adjacency))
