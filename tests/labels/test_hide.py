from itertools import pairwise

import numpy as np
import pytest

from fewtags.errors import UserError
from fewtags.labels.hide import held_out, hide

SHAPE = (400, 50)


@pytest.fixture
def values():
    return np.random.default_rng(7).choice(np.array([-1, 0, 1], np.int8), SHAPE)


def test_kept_entries_are_as_given_and_hidden_ones_unknown(values):
    hidden = hide(values, 0.3, seed=1)
    assert hidden.dtype == np.int8
    assert ((hidden == values) | (hidden == 0)).all()
    assert (hidden[values == 0] == 0).all()


def test_limits(values):
    assert (hide(values, 1.0, seed=3) == values).all()
    assert not hide(values, 0.0, seed=3).any()


@pytest.mark.parametrize("known", [0.1, 0.5, 0.9])
def test_the_share_is_kept_of_present_and_absent_alike(values, known):
    hidden = hide(values, known, seed=0)
    for value in (-1, 1):
        there = values == value
        error = 4 * np.sqrt(known * (1 - known) / there.sum())
        assert (hidden[there] == value).mean() == pytest.approx(known, abs=error)


def test_nested_across_shares():
    full = np.ones(SHAPE, np.int8)
    shares = [0.1, 0.2, 0.5, 0.9, 1.0]
    kept = [hide(full, share, seed=5) != 0 for share in shares]
    for smaller, larger in pairwise(kept):
        assert (smaller <= larger).all()
        assert smaller.sum() < larger.sum()


def test_entries_are_hidden_one_by_one():
    """Neither whole rows nor whole columns: their shares scatter as a binomial does."""
    kept = hide(np.ones(SHAPE, np.int8), 0.5, seed=0) != 0
    assert kept.mean(axis=1).std() == pytest.approx(np.sqrt(0.25 / SHAPE[1]), rel=0.15)
    assert kept.mean(axis=0).std() == pytest.approx(np.sqrt(0.25 / SHAPE[0]), rel=0.35)


def test_what_is_hidden_depends_on_the_seed_and_not_on_the_labels(values):
    full = np.ones(SHAPE, np.int8)
    kept = hide(full, 0.4, seed=9) != 0
    assert (kept == (hide(-full, 0.4, seed=9) != 0)).all()
    assert ((hide(values, 0.4, seed=9) != 0) == (kept & (values != 0))).all()
    assert (kept != (hide(full, 0.4, seed=10) != 0)).any()


def test_the_draw_is_fixed_for_good():
    """A run is reproduced years later: these entries are part of the format."""
    assert np.flatnonzero(hide(np.ones((4, 5), np.int8), 0.3, seed=0)).tolist() == KEPT_AT_SEED_0
    assert np.flatnonzero(held_out(np.ones((4, 5), np.int8), 0.3, seed=0)).tolist() == HELD_OUT_AT_SEED_0


KEPT_AT_SEED_0 = [2, 9, 16, 18, 19]
HELD_OUT_AT_SEED_0 = [0, 1, 3, 6, 7, 8, 11, 19]


def test_held_out_is_a_share_of_the_known_entries(values):
    drawn = held_out(values, 0.2, seed=0)
    known = values != 0
    assert not drawn[~known].any()
    assert drawn[known].mean() == pytest.approx(0.2, abs=0.015)
    assert not held_out(values, 0.0, seed=0).any()


def test_held_out_is_independent_of_what_is_hidden():
    full = np.ones((1000, 50), np.int8)
    drawn, kept = held_out(full, 0.1, seed=0), hide(full, 0.1, seed=0) != 0
    assert drawn[kept].mean() == pytest.approx(0.1, abs=0.02)
    assert (held_out(np.where(kept, full, 0), 0.1, seed=0) == (drawn & kept)).all()


@pytest.mark.parametrize("function", [hide, held_out])
def test_mistakes_are_said(function):
    values = np.ones((2, 2), np.int8)
    with pytest.raises(UserError, match=r"=1.5: a share is between 0 and 1"):
        function(values, 1.5, 0)
    with pytest.raises(UserError, match="seed=-1: a seed is 0 or more"):
        function(values, 0.5, -1)
