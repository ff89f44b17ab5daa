import numpy as np
import pandas as pd
import pytest

from fewtags.benchmark.statistics import (
    Comparison,
    compare,
    comparison,
    holm,
    mean_interval,
    paired_differences,
    sign_flip_p,
    smallest_adjusted,
)
from tests.oracles import sign_flip as oracle

BLOCKS = ("data", "known", "seed")


def made(differences) -> Comparison:
    return comparison("a", "b", np.array(differences, dtype=float))


def results(values):
    """{(method, known, seed): mAP} as rows."""
    rows = [{"data": "d", "method": m, "known": k, "seed": s, "mAP": v} for (m, k, s), v in values.items()]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("n", [1, 2, 5, 9, 12])
def test_p_counts_sign_patterns(n):
    for seed in range(5):
        differences = np.random.default_rng([n, seed]).normal(0.5, 1, n).round(1)
        assert sign_flip_p(differences) == pytest.approx(oracle.sign_flip_p(differences.tolist()))


def test_p_with_ties_and_equal_sizes():
    for differences in ([0.1] * 9, [0.1, -0.1] * 5, [0.0] * 4 + [0.3] * 6, [0.1 + 0.2, -0.3, 0.3]):
        assert sign_flip_p(np.array(differences)) == pytest.approx(oracle.sign_flip_p(differences))


def test_all_in_one_direction_gives_the_smallest_p():
    assert sign_flip_p(np.full(10, 0.7)) == pytest.approx(2 / 2**10)
    assert sign_flip_p(np.full(10, -0.7)) == pytest.approx(2 / 2**10)


def test_drawn_p_is_near_the_counted_one_and_repeats():
    differences = np.random.default_rng(3).normal(0.45, 1, 17)
    drawn = sign_flip_p(differences)
    assert drawn == pytest.approx(oracle.sign_flip_p(differences.tolist()), abs=0.005)
    assert drawn == sign_flip_p(differences)


def test_no_difference_at_all():
    found = made([0.0] * 12)
    assert (found.difference, found.p, found.verdict) == (0.0, 1.0, "no difference shown")
    assert (found.wins, found.ties, found.losses) == (0, 12, 0)
    assert (found.low, found.high) == (0.0, 0.0)


def test_one_block_has_a_difference_and_nothing_else():
    found = made([1.5])
    assert (found.difference, found.low, found.high, found.p) == (1.5, None, None, None)
    assert (found.wins, found.verdict) == (1, "not decidable")


def test_no_block():
    found = made([])
    assert (found.blocks, found.difference, found.p, found.verdict) == (0, None, None, "not decidable")


def test_eight_blocks_are_not_decidable_and_nine_are():
    assert made([1.0] * 8).verdict == "not decidable"
    assert made([1.0] * 8).p is None
    assert made([1.0] * 9).verdict == "ahead"
    assert made([-1.0] * 9).verdict == "behind"


def test_interval_is_students():
    low, high = mean_interval(np.array([1.0, 2.0, 3.0]))
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), abs=1e-5)


def test_pairs_only_blocks_that_have_both():
    rows = results({("a", 0.1, 0): 5, ("a", 0.1, 1): 6, ("a", 0.5, 0): 9, ("b", 0.1, 0): 4, ("b", 0.5, 0): 10})
    differences = paired_differences(rows, "a", "b", BLOCKS)
    assert sorted(differences) == [-1, 1]
    found = compare(rows, "a", "b", BLOCKS)
    assert (found.blocks, found.difference, found.wins, found.losses) == (2, 0, 1, 1)


def test_a_method_without_rows_shares_no_block():
    rows = results({("a", 0.1, 0): 5})
    assert compare(rows, "a", "missing", BLOCKS).blocks == 0


def test_a_score_that_is_missing_is_no_block():
    rows = results({("a", 0.1, 0): 5, ("b", 0.1, 0): None})
    assert compare(rows, "a", "b", BLOCKS).blocks == 0


def test_holm_equals_the_plain_loop():
    random = np.random.default_rng(0)
    for size in (1, 2, 7):
        comparisons = [made(random.normal(0.4, 1, 10)) for _ in range(size)]
        expected = oracle.holm([c.p for c in comparisons])
        assert [c.adjusted for c in holm(comparisons)] == pytest.approx(expected)


def test_holm_leaves_out_what_has_no_p():
    strong, weak = made([1.0] * 9), made([1.0] * 3)
    adjusted = holm([weak, strong, strong])
    assert [c.adjusted for c in adjusted] == [None, pytest.approx(2 * 2 / 2**9), pytest.approx(2 * 2 / 2**9)]
    assert adjusted[0].verdict == "not decidable"


def test_the_verdict_is_that_of_the_corrected_p():
    ahead = made([1.0] * 9)
    assert {c.verdict for c in holm([ahead] * 5)} == {"ahead"}
    assert {c.verdict for c in holm([ahead] * 14)} == {"no difference shown"}
    assert smallest_adjusted([ahead] * 14) == pytest.approx(14 * 2 / 2**9)
    assert smallest_adjusted([made([1.0])]) is None
