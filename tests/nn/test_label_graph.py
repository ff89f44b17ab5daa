import numpy as np
import pytest
import torch

from fewtags.nn.label_graph import (
    USUAL_SMOOTHING,
    GatedGraph,
    conditional_graph,
    count_pairs,
    likeliest_smoothing,
    shares_without_itself,
)
from tests.oracles import label_graph as oracle


def partial_labels(images=60, categories=6, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1, 0, 1], size=(images, categories), p=[0.4, 0.3, 0.3]).astype(np.int8)
    labels[:, 4] = np.minimum(labels[:, 4], 0)  # never known present
    labels[:, 5] = 0  # nothing known
    return labels


@pytest.mark.parametrize("kind", ["smoothed", "released"])
def test_equals_counting(kind):
    labels = partial_labels()
    graph = conditional_graph(labels, kind, 3.0)
    assert graph.dtype == torch.float32
    assert np.allclose(graph.numpy(), oracle.conditional_graph(labels.tolist(), kind, 3.0), atol=1e-6)
    assert torch.isfinite(graph).all()
    assert (graph.diagonal() == 0).all()


def test_tensors_and_arrays_give_the_same():
    labels = partial_labels()
    assert torch.equal(conditional_graph(labels), conditional_graph(torch.from_numpy(labels).float()))


def test_a_category_never_seen_present_predicts_base_rates():
    labels = partial_labels()
    known = labels[:, 0][labels[:, 0] != 0]
    assert conditional_graph(labels)[4, 0].item() == pytest.approx((known == 1).mean())


def test_shares_leave_the_images_own_label_out():
    """As if the graph were counted again with that one label taken away, prior and smoothing unchanged."""
    labels = partial_labels()
    counts = count_pairs(labels)
    images, given = np.nonzero(labels == 1)
    shares = shares_without_itself(counts, torch.from_numpy(given), torch.from_numpy(labels[images]))
    for row, (image, j) in enumerate(zip(images[:20], given[:20], strict=True)):
        for i in range(labels.shape[1]):
            others = [k for k in range(len(labels)) if labels[k, j] == 1 and labels[k, i] != 0 and k != image]
            hits = sum(labels[k, i] == 1 for k in others)
            expected = (hits + float(counts.prior[i])) / (len(others) + float(counts.smoothing))
            if i != j:
                assert float(shares[row, i]) == pytest.approx(expected, rel=1e-5)


def test_shares_of_unknown_labels_are_the_graph():
    labels = partial_labels()
    given = torch.arange(labels.shape[1])
    shares = shares_without_itself(count_pairs(labels), given, torch.zeros(labels.shape[1], labels.shape[1]))
    assert torch.allclose(shares.fill_diagonal_(0), conditional_graph(labels))


def test_identity_couples_nothing():
    assert torch.equal(conditional_graph(partial_labels(), "identity"), torch.eye(6))


def test_all_known_and_hardly_smoothed_is_the_conditional_frequency():
    labels = np.where(partial_labels() == 0, -1, partial_labels())
    smoothed = conditional_graph(labels, "smoothed", 1e-9)[:4]
    assert torch.allclose(smoothed, conditional_graph(labels, "released")[:4], atol=1e-6)


def test_released_is_too_small_when_labels_are_hidden():
    rng = np.random.default_rng(0)
    first = rng.random(20000) < 0.5
    full = np.where(np.stack([first, first], axis=1), 1, -1)
    hidden = np.where(rng.random(full.shape) < 0.1, full, 0)
    assert conditional_graph(hidden, "released")[0, 1].item() == pytest.approx(0.1, abs=0.03)
    assert conditional_graph(hidden, "smoothed")[0, 1].item() == pytest.approx(1, abs=0.06)


def test_nothing_known_is_a_graph_of_zeros():
    assert torch.equal(conditional_graph(np.zeros((5, 3), np.int8)), torch.zeros(3, 3))


def drawn_counts(smoothing, seed=0, categories=25):
    rng = np.random.default_rng(seed)
    base_rates = rng.uniform(0.02, 0.4, categories)
    trials = rng.integers(1, 40, (categories, categories))
    chances = rng.beta(smoothing * base_rates, smoothing * (1 - base_rates), (categories, categories))
    return rng.binomial(trials, chances), trials, base_rates


def test_smoothing_has_the_greatest_marginal_likelihood():
    together, trials, base_rates = drawn_counts(20, categories=8)
    best = likeliest_smoothing(together, trials, base_rates)

    def likelihood(smoothing):
        return sum(
            oracle.log_marginal_likelihood(int(together[i, j]), int(trials[i, j]), base_rates[j], smoothing)
            for i in range(8)
            for j in range(8)
            if i != j
        )

    assert all(likelihood(best) >= likelihood(best * factor) for factor in (0.8, 0.98, 1.02, 1.25))


@pytest.mark.parametrize("truth", [3.0, 20.0, 100.0])
def test_smoothing_is_found_again(truth):
    assert likeliest_smoothing(*drawn_counts(truth)) == pytest.approx(truth, rel=0.35)


def test_smoothing_falls_back_when_labels_cannot_tell():
    assert likeliest_smoothing(np.ones((2, 2)), np.ones((2, 2)), np.array([0.5, 0.5])) == USUAL_SMOOTHING


def test_gated_graph_equals_the_node_loop():
    torch.manual_seed(0)
    module = GatedGraph(5, steps=3).double()
    states = torch.randn(2, 4, 5, dtype=torch.float64)
    adjacency = torch.rand(4, 4, dtype=torch.float64)
    weights = [
        p.detach().numpy()
        for p in (
            module.from_message.weight,
            module.from_message.bias,
            module.gates_from_state.weight,
            module.candidate_from_state.weight,
        )
    ]
    found = module(states, adjacency).detach().numpy()
    for image in range(2):
        expected = oracle.gated_graph(states[image].numpy(), adjacency.numpy(), 3, *weights)
        assert np.allclose(found[image], expected)


def test_no_steps_leave_the_states():
    states = torch.randn(2, 4, 5)
    assert torch.equal(GatedGraph(5, steps=0)(states, torch.eye(4)), states)


def test_closed_gates_let_states_through_nearly_as_they_are():
    torch.manual_seed(0)
    module, states, adjacency = GatedGraph(5, steps=1), torch.rand(2, 4, 5), torch.rand(4, 4)
    open_change = (module(states, adjacency) - states).abs().mean()
    module.start_closed()
    change = (module(states, adjacency) - states).abs().mean()
    assert 0 < change < 0.2 * open_change
