"""The promise: its test against plain counting, and whether it is kept."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from fewtags.completion import calibration
from fewtags.completion import filling as filling_module
from fewtags.completion.figures import score_alone
from fewtags.completion.filling import decide, probabilities
from fewtags.completion.precision import (
    Side,
    certificates,
    certify,
    fewest,
    lower_bound,
    most_promising,
    p_value,
    reachable,
    with_enough,
)
from tests.completion.fabricate import question, world
from tests.oracles.completion import binomial_tail, tail_by_enumeration

RISK = 0.05


def side_of(seed: int = 0, held: int = 400, fill: int = 2000, categories: int = 3, truth=None) -> Side:
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(1.5, 2, held + fill))
    right = rng.random(held + fill) < (p if truth is None else truth)
    category = rng.integers(0, categories, held + fill)
    return Side(p[:held], right[:held], category[:held], p[held:], category[held:])


@pytest.mark.parametrize(("accepted", "wrong", "filled"), [(5, 0, 6), (6, 1, 5), (4, 2, 8), (7, 3, 4)])
def test_p_value_is_the_share_of_ways_to_hold_out(accepted, wrong, filled):
    for precision in (0.5, 0.8, 0.95):
        too_many = int((1 - precision) * filled + 1e-9) + 1
        expected = tail_by_enumeration(accepted, wrong, filled, min(too_many + wrong, accepted + filled))
        assert p_value(accepted, wrong, filled, precision) == pytest.approx(expected)


def test_with_many_to_fill_it_is_clopper_and_pearsons_tail():
    for accepted, wrong in ((58, 0), (59, 0), (93, 1), (200, 5)):
        found = float(p_value(accepted, wrong, 10_000_000, 0.95))
        assert found == pytest.approx(binomial_tail(accepted, wrong, 0.05), rel=1e-3)


def test_95_percent_at_95_percent_confidence_needs_59_faultless():
    assert fewest(0.95, RISK) == 59
    assert p_value(58, 0, 1_000_000, 0.95) > RISK
    assert p_value(59, 0, 1_000_000, 0.95) <= RISK


def test_nothing_accepted_or_nothing_to_fill_promises_nothing():
    assert p_value(0, 0, 100, 0.9) == 1
    assert p_value(100, 0, 0, 0.9) == 1
    assert p_value(5, 5, 100, 0.9) == 1
    nothing = Side(*(np.zeros(0) for _ in range(5)))
    assert certify(nothing, 0.9, RISK) is None
    assert reachable(nothing, RISK) is None


def test_lower_bound_is_where_the_p_value_turns():
    for accepted, wrong, filled in ((100, 2, 900), (60, 0, 5000), (30, 10, 40)):
        bound = lower_bound(accepted, wrong, filled, RISK)
        assert p_value(accepted, wrong, filled, bound) <= RISK
        assert p_value(accepted, wrong, filled, bound + 1.5 / filled) > RISK


def test_the_search_never_looks_at_a_label_before_it_tests():
    side = side_of()
    flipped = Side(side.held, ~side.right, side.held_category, side.fill, side.fill_category)
    assert most_promising(side, RISK) == most_promising(flipped, RISK)
    assert np.array_equal(side.thresholds, flipped.thresholds)
    assert np.array_equal(with_enough(side, 3, 0.6, RISK), with_enough(flipped, 3, 0.6, RISK))


def test_the_search_ends_at_the_first_threshold_that_fails():
    side = side_of(held=3000, fill=9000)
    chosen = certify(side, 0.9, RISK)
    start = most_promising(side, RISK)
    accepted, wrong, filled = side.counts
    passes = p_value(accepted, wrong, filled, 0.9) <= RISK
    place = int(np.flatnonzero(side.thresholds == chosen)[0])
    assert passes[start : place + 1].all()
    assert place == len(passes) - 1 or not passes[place + 1]


def test_right_everywhere_fills_all_that_is_likelier_than_not():
    side = side_of(truth=1.0)
    (found,) = certificates(side, 3, 0.95, RISK)
    assert found.filled == (side.fill >= found.threshold).sum()
    assert found.filled >= 0.9 * (side.fill >= 0.5).sum()
    assert found.wrong == 0
    assert found.bound >= 0.95


def test_wrong_everywhere_fills_nothing_and_says_what_is_reachable():
    side = side_of(truth=0.6)
    (found,) = certificates(side, 3, 0.9, RISK)
    assert found.threshold is None
    assert found.filled == 0
    assert 0.4 < found.reachable < 0.65
    assert certify(side, found.reachable, RISK) is not None
    assert certify(side, found.reachable + 0.011, RISK) is None


def test_a_category_with_enough_labels_is_judged_on_its_own():
    """Category 0 is always right, category 1 never more than half: the first must not carry the second."""
    rng = np.random.default_rng(3)
    category = rng.permutation(np.repeat([0, 1, 2], [6000, 6000, 300]))
    p = np.full(len(category), 0.97) + rng.uniform(0, 0.02, len(category))
    right = rng.random(len(category)) < np.array([1.0, 0.5, 1.0])[category]
    half = len(category) // 2
    side = Side(p[:half], right[:half], category[:half], p[half:], category[half:])
    found = {part.categories: part for part in certificates(side, 3, 0.9, RISK)}
    assert found[(0,)].threshold is not None
    assert found[(1,)].threshold is None
    assert found[(2,)].pooled
    assert sum(part.filled for part in found.values()) == (category[half:] != 1).sum()


def test_the_promise_is_kept_over_200_masks(monkeypatch):
    """Each mask draws anew who is held out; the score is overconfident, and evidence partly missing.

    With three folds in place of ten: faster, and harder, as their calibrators differ more.
    """
    for module in (calibration, filling_module):
        monkeypatch.setattr(module, "FOLDS", 3)
    given, masks = world(), 200
    broken, filled = {}, {}
    for seed in range(masks):
        asked, truth = question(given, seed, holdout=0.4)
        found = probabilities(asked)
        for level in (0.8, 0.9, 0.95):
            values = decide(asked, found, level, RISK).values
            for value, right in ((1, truth), (-1, ~truth)):
                chosen = values == value
                key = level, value
                filled[key] = filled.get(key, 0) + chosen.any()
                broken[key] = broken.get(key, 0) + bool(chosen.any() and right[chosen].mean() < level)
    most = binom.ppf(0.99, masks, RISK)
    assert all(count <= most for count in broken.values()), broken
    assert all(filled[key] > 0.9 * masks for key in ((0.8, 1), (0.8, -1), (0.9, -1), (0.95, -1))), filled


def test_without_a_bound_the_promise_would_be_broken_half_of_the_time():
    """The same masks with the loosest threshold whose held-out share is right: what a naive choice would do."""
    given, masks, broken = world(), 40, 0
    for seed in range(masks):
        asked, truth = question(given, seed)
        found = probabilities(asked)
        order = np.argsort(-found.held)
        share = np.cumsum(asked.present[order]) / np.arange(1, len(order) + 1)
        last = np.flatnonzero(share >= 0.9)[-1]
        chosen = found.fill >= found.held[order[last]]
        broken += truth[chosen].mean() < 0.9
    assert broken > 0.25 * masks


def test_evidence_fills_at_least_as_much_as_the_score_alone():
    given = world()
    with_evidence, alone = {}, {}
    for seed in range(10):
        asked, _ = question(given, seed)
        found = probabilities(asked)
        for level, plain in score_alone(asked, [0.8, 0.9, 0.95], RISK).items():
            filling = decide(asked, found, level, RISK)
            with_evidence[level] = with_evidence.get(level, 0) + filling.coverage
            alone[level] = alone.get(level, 0) + plain.coverage
    assert all(with_evidence[level] > alone[level] for level in alone), (with_evidence, alone)
