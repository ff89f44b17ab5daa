from __future__ import annotations

import math

import numpy as np
import pytest

from fewtags.review.orders import ORDERS, entropy, order_rows, rank_in_category, value
from tests.oracles.review_orders import value_of_each

P = np.array([0.9, 0.5, 0.1, 0.52, 0.99, 0.5], dtype=np.float32)
CATEGORY = np.array([0, 0, 1, 1, 0, 0], dtype=np.int16)
KNOWN = np.array([8, 0])


def test_each_order_asks_everything_once():
    for order in ORDERS:
        rows = order_rows(order, P, CATEGORY, KNOWN)
        assert sorted(rows.tolist()) == list(range(len(P)))
        assert rows.dtype == np.int32


def test_uncertain_and_confident_are_opposite_ends():
    assert order_rows("uncertain", P, CATEGORY, KNOWN)[:2].tolist() == [1, 5]
    assert order_rows("confident", P, CATEGORY, KNOWN)[0] == 4


def test_random_is_the_same_every_time():
    assert (order_rows("random", P, CATEGORY, KNOWN) == order_rows("random", P, CATEGORY, KNOWN)).all()


def test_value_equals_the_oracle():
    rng = np.random.default_rng(0)
    p, category = rng.random(300).astype(np.float32), rng.integers(0, 7, 300).astype(np.int16)
    known = rng.integers(0, 50, 7)
    expected = value_of_each(p.tolist(), category.tolist(), known.tolist())
    assert value(p, category, known) == pytest.approx(expected, rel=1e-4)


def test_value_prefers_a_category_of_which_little_is_known():
    assert order_rows("value", np.array([0.5, 0.5], np.float32), np.array([0, 1], np.int16), KNOWN).tolist() == [
        1,
        0,
    ]


def test_the_hundredth_alike_is_worth_less_than_the_first_of_another():
    p = np.full(101, 0.5, np.float32)
    p[100] = 0.3
    category = np.array([0] * 100 + [1], np.int16)
    assert order_rows("value", p, category, np.zeros(2, int)).tolist().index(100) < 3


def test_entropy_at_the_ends_is_a_number():
    assert entropy(np.array([0.0, 0.5, 1.0])) == pytest.approx([0, 1, 0], abs=1e-5)
    assert math.isfinite(float(entropy(np.array([0.0]))[0]))


def test_nothing_to_order():
    nothing = np.zeros(0, np.float32), np.zeros(0, np.int16)
    assert len(rank_in_category(*nothing)) == 0
    for order in ORDERS:
        assert len(order_rows(order, *nothing, KNOWN)) == 0
