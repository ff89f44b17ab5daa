import math

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from fewtags.transfer.threshold_fit import local_logistic_loss, surest_precision
from fewtags.transfer.thresholds import WRONG_COST, LearnedThreshold, pseudo_labels
from tests.oracles import losses as loss_oracle
from tests.oracles import thresholds as oracle

PROBLEMS = list(oracle.PROBLEMS)


def tensors(name, count, seed, few=True):
    evidence, labels = oracle.draw(name, count, seed, few)
    return torch.from_numpy(evidence), torch.from_numpy(labels)


def trained(threshold, batches, weight=0.1):
    """As the trainer does it: an Adam group of its own at lr 1e-2, the loss weighted by λ₃."""
    optimizer = torch.optim.Adam(threshold.parameters(), lr=1e-2)
    for evidence, labels in batches:
        threshold.start_slope(evidence, labels != 0)
        optimizer.zero_grad()
        (weight * threshold.loss(evidence, labels)).backward()
        optimizer.step()
        threshold.clamp_()
    return threshold


@pytest.mark.parametrize("name", PROBLEMS)
def test_fit_lands_at_the_half_point_with_few_positives(name):
    evidence, labels = tensors(name, 20_000, seed=1)
    assert 0.03 < (labels == 1).float().mean() < 0.07
    lands_at_the_half_point(name, evidence, labels)


@pytest.mark.parametrize("name", PROBLEMS)
def test_fit_lands_at_the_half_point_with_even_evidence(name):
    lands_at_the_half_point(name, *tensors(name, 5_000, seed=1, few=False))


def lands_at_the_half_point(name, evidence, labels):
    threshold = LearnedThreshold(1)
    threshold.fit(evidence, labels)
    assert threshold.value().item() == pytest.approx(oracle.PROBLEMS[name][1], abs=0.05)


@pytest.mark.parametrize("name", PROBLEMS)
def test_training_lands_at_the_half_point(name):
    evidence, labels = (drawn.view(500, -1, 5) for drawn in tensors(name, 500 * 500, seed=0))
    threshold = trained(LearnedThreshold(5), zip(evidence, labels, strict=True))
    assert threshold.value()[0].item() == pytest.approx(oracle.PROBLEMS[name][1], abs=0.05)


def test_a_plain_logistic_fit_would_not_do():
    evidence, labels = tensors("never sure", 20_000, seed=1)
    theta, log_slope = (torch.tensor(value, requires_grad=True) for value in (1.0, -2.0))
    optimizer = torch.optim.Adam([theta, log_slope], lr=0.03)
    for _ in range(600):
        optimizer.zero_grad()
        logits = (evidence - theta) / log_slope.exp()
        torch.nn.functional.binary_cross_entropy_with_logits(logits, (labels > 0).float()).backward()
        optimizer.step()
    assert abs(theta.item() - oracle.PROBLEMS["never sure"][1]) > 0.05


@pytest.mark.parametrize("highest", [0.9, 0.3, 0.01])
def test_the_data_moves_theta_at_the_first_step(highest):
    torch.manual_seed(0)
    evidence = highest * torch.rand(8, 5)
    labels = torch.where(evidence > 0.5 * highest, 1, -1)
    threshold = trained(LearnedThreshold(5), [(evidence, labels)])
    assert threshold.theta.item() == pytest.approx(0.99, abs=1e-4)
    assert threshold.theta.grad.item() > 1e-3


def test_released_theta_feels_nothing_below_itself():
    threshold = LearnedThreshold(5, style="released")
    evidence = 0.9 * torch.rand(8, 5)
    threshold.loss(evidence, torch.ones(8, 5)).backward()
    assert threshold.theta.grad.item() == 0
    assert not threshold.log_slope.requires_grad
    threshold.fit(evidence.flatten(), torch.ones(40))
    assert threshold.theta.item() == 1


def test_released_loss_equals_the_loop():
    torch.manual_seed(0)
    threshold = LearnedThreshold(3, style="released")
    evidence, labels = 2 * torch.rand(4, 3), torch.randint(-1, 2, (4, 3))
    logits = [[min(max(value - 1, 0), 1) for value in row] for row in evidence.tolist()]
    expected = loss_oracle.partial_bce(logits, labels.tolist(), "batch")
    assert threshold.loss(evidence, labels).item() == pytest.approx(expected, rel=1e-5)


def test_loss_equals_the_loop():
    torch.manual_seed(0)
    difference, labels, slope = torch.randn(4, 3), torch.randint(-1, 2, (4, 3)), 0.7
    labels.view(-1)[difference.abs().argmin()] = 0  # the nearest entry is unknown: it must not set the scale
    entries = [(d, y) for d, y in zip(difference.flatten().tolist(), labels.flatten().tolist(), strict=True) if y]

    def nearness(d):
        return loss_oracle.sigmoid(2 * d / slope) * loss_oracle.sigmoid(-2 * d / slope)

    largest = max(nearness(d) for d, _ in entries)
    expected = sum(nearness(d) / largest * loss_oracle.bce(d / slope + 0.2, y) for d, y in entries) / len(entries)
    found = local_logistic_loss(difference, torch.tensor(slope), labels, 0.2, locality=2.0)
    assert found.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("style", ["learned", "released"])
@pytest.mark.parametrize("scope", ["global", "per_category", 0.7])
def test_nothing_known_is_a_zero_with_a_graph(style, scope):
    threshold = LearnedThreshold(3, scope, style=style)
    evidence = torch.rand(4, 3, requires_grad=True)
    threshold.start_slope(evidence, torch.zeros(4, 3, dtype=torch.bool))
    loss = threshold.loss(evidence, torch.zeros(4, 3))
    loss.backward()
    assert loss.item() == 0
    assert (evidence.grad == 0).all()
    assert all((p.grad == 0).all() for p in threshold.parameters() if p.grad is not None)


def test_unknown_evidence_has_exactly_zero_gradient():
    torch.manual_seed(0)
    threshold = LearnedThreshold(3, "per_category")
    evidence, labels = torch.rand(6, 3, requires_grad=True), torch.randint(-1, 2, (6, 3))
    threshold.loss(evidence, labels).backward()
    assert (evidence.grad[labels == 0] == 0).all()
    assert (evidence.grad[labels != 0] != 0).all()


def test_slope_starts_at_the_spread_of_the_first_batches():
    torch.manual_seed(0)
    threshold = LearnedThreshold(5)
    batches = [0.3 + 0.2 * torch.randn(100, 5) for _ in range(3)]
    mask = torch.ones(100, 5, dtype=torch.bool)
    mask[:, 4] = False
    for batch in batches:
        threshold.start_slope(batch, mask)
    assert threshold.started
    expected = torch.cat([batch[mask] for batch in batches]).std(unbiased=False)
    assert threshold.slope.item() == pytest.approx(expected.item(), rel=1e-3)
    copy = LearnedThreshold(5)
    copy.load_state_dict(threshold.state_dict())
    for started in (threshold, copy):
        started.start_slope(5 * torch.rand(100, 5), mask)
        assert started.slope.item() == pytest.approx(expected.item(), rel=1e-3)


def test_slope_of_constant_evidence_is_not_zero():
    threshold = LearnedThreshold(2)
    threshold.start_slope(torch.full((4, 2), 0.3), torch.ones(4, 2, dtype=torch.bool))
    assert threshold.slope.item() == pytest.approx(0.02)


@pytest.mark.parametrize(("maximum", "expected"), [(1.0, 1.0), (None, 1.8)])
def test_clamping(maximum, expected):
    threshold = LearnedThreshold(2, maximum=maximum)
    for value, clamped in ((1.8, expected), (-0.5, 0.0)):
        threshold.theta.data.fill_(value)
        threshold.clamp_()
        assert threshold.theta.item() == pytest.approx(clamped)


def test_a_sum_of_evidence_may_have_a_theta_above_one():
    evidence, labels = tensors("ramp", 20_000, seed=0, few=False)
    threshold = LearnedThreshold(1, maximum=None)
    threshold.fit(4 * evidence, labels)
    assert threshold.value().item() == pytest.approx(1.8, abs=0.1)


def test_a_fixed_threshold_stays():
    evidence, labels = tensors("ramp", 2_000, seed=0)
    threshold = LearnedThreshold(2, 0.7)
    trained(threshold, [(evidence.view(-1, 2), labels.view(-1, 2))] * 3)
    threshold.fit(evidence, labels)
    assert threshold.value().tolist() == pytest.approx([0.7, 0.7])


def test_one_kind_of_labels_tells_nothing():
    threshold = LearnedThreshold(1)
    threshold.fit(torch.rand(50), torch.ones(50))
    threshold.fit(torch.rand(0), torch.ones(0))
    assert threshold.value().item() == 1


def test_evidence_that_never_reaches_one_half_leaves_no_pseudo_label():
    rng = np.random.default_rng(0)
    evidence = rng.random(5000).astype(np.float32) * 0.5
    labels = np.where(rng.random(5000) < 0.3 * evidence, 1, -1)
    threshold = LearnedThreshold(1)
    threshold.fit(torch.from_numpy(evidence), torch.from_numpy(labels))
    assert threshold.value().item() > 0.5


def by_category(counts=(4000, 4000, 60), shifts=(-0.15, 0.15, 0.3), seed=0):
    rng = np.random.default_rng(seed)
    category = np.repeat(np.arange(3), counts)
    evidence = rng.random(len(category)).astype(np.float32)
    chance = oracle.sigmoid((evidence - 0.5 - np.array(shifts)[category]) / 0.05)
    return (torch.from_numpy(x) for x in (evidence, np.where(rng.random(len(category)) < chance, 1, -1), category))


def test_categories_have_their_own_threshold_as_far_as_labels_allow():
    evidence, labels, category = by_category()
    threshold = LearnedThreshold(4, "per_category")
    threshold.fit(evidence, labels, category)
    value = threshold.value()
    assert value[:2].tolist() == pytest.approx([0.35, 0.65], abs=0.03)
    positives = int(((category == 2) & (labels == 1)).sum())
    own = threshold.theta + threshold.offset[2]
    expected = threshold.theta + positives / (positives + 20) * (own - threshold.theta)
    assert own.item() == pytest.approx(0.8, abs=0.06)
    assert value[2].item() == pytest.approx(expected.item(), abs=1e-5)
    assert value[3].item() == pytest.approx(threshold.theta.item())  # never seen: the common one


def test_category_offsets_are_learned_in_training_too():
    evidence, labels, _ = by_category((4000, 4000, 0))
    full_evidence, full_labels = (x.view(2, -1).T.contiguous() for x in (evidence, labels))
    threshold = LearnedThreshold(2, "per_category")
    threshold.count_positives(full_labels)
    trained(threshold, ((full_evidence[i::20], full_labels[i::20]) for i in range(20) for _ in range(30)))
    assert threshold.value().tolist() == pytest.approx([0.35, 0.65], abs=0.05)


@pytest.mark.parametrize("precision", [0.6, 0.8])
def test_precision_target_is_the_smallest_that_can_be_promised(precision):
    evidence, labels = oracle.draw("logistic", 3_000, seed=0, few=False)
    threshold = LearnedThreshold(2, target=f"precision:{precision}")
    assert threshold.value().tolist() == [1, 1]  # nothing is promised before it is fitted
    threshold.fit(torch.from_numpy(evidence), torch.from_numpy(labels))
    found = threshold.value()[0].item()

    def bound(theta):
        right, wrong = oracle.right_and_wrong(evidence, labels, theta)
        interval = binomtest(right, right + wrong).proportion_ci(0.8, method="exact")  # 90 % to one side
        return interval.low

    assert bound(np.float32(found)) >= precision
    for smaller in evidence[evidence < found][::40]:
        assert bound(smaller) < precision


def test_ties_are_taken_together():
    evidence, present = torch.tensor([0.9] * 30 + [0.5] * 40), torch.tensor([True] * 50 + [False] * 20)
    assert surest_precision(evidence, present, 0.9) == pytest.approx(0.9)
    assert surest_precision(evidence, present, 0.999, otherwise=1.0) == 1.0


def test_utility_target_is_where_a_wrong_label_costs_what_a_right_one_gains():
    evidence, labels = tensors("logistic", 40_000, seed=0, few=False)
    threshold = LearnedThreshold(1, target="utility")
    threshold.fit(evidence, labels)
    level = WRONG_COST / (1 + WRONG_COST)
    assert threshold.value().item() == pytest.approx(0.5 + 0.06 * math.log(level / (1 - level)), abs=0.02)

    def gain(theta):
        right, wrong = oracle.right_and_wrong(evidence.tolist(), labels.tolist(), theta)
        return right - WRONG_COST * wrong

    found = threshold.value().item()
    assert gain(found) > max(gain(found - 0.06), gain(found + 0.06))


def test_decisions_need_evidence_and_carry_no_gradient():
    threshold = LearnedThreshold(3, 0.5)
    evidence = torch.tensor([[0.5, 0.4, 0.9]], requires_grad=True)
    decided = threshold.decide(evidence, torch.tensor([[True, True, False]]))
    assert decided.tolist() == [[True, False, False]]
    assert not decided.requires_grad


def test_pseudo_labels_are_written_only_where_the_label_is_unknown():
    labels = torch.tensor([[1.0, 0.0, -1.0, 0.0]])
    decided = torch.tensor([[True, True, True, False]])
    assert pseudo_labels(labels, decided).tolist() == [[0, 1, 0, 0]]
    assert pseudo_labels(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bool)).sum() == 0


def test_everything_is_saved():
    threshold = LearnedThreshold(3, "per_category", "precision:0.7")
    assert set(threshold.state_dict()) == {
        "theta",
        "log_slope",
        "offset",
        "positives",
        "decision",
        "started",
        "spread",
    }
