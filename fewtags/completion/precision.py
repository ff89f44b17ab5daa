"""The promise about precision: how far a threshold may go down before too much of what it accepts is wrong.

Held-out and unknown entries differ by a toss of a coin alone, so of all entries that a threshold accepts, those
held out are a random sample: the number of wrong ones among them is hypergeometric, whatever the model, and
however the entries of one image hang together. Thresholds are tried in an order that was fixed without looking at
a label or at who was held out, and the first that fails ends the search (fixed-sequence testing), so that trying
many costs no confidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import hypergeom, poisson

LEAST_PROBABILITY = 0.5
"""Nothing less likely than this is accepted, whatever precision is asked for."""
GROWTH = 1.1
"""Each threshold tried accepts this many times the held-out entries of the one before."""
ENOUGH = 10
"""A category is judged on its own if it has this many times the fewest held-out acceptances that could suffice."""


@dataclass(frozen=True)
class Side:
    """Entries that may be accepted on one side (present, or absent): their probability of being right.

    Held-out entries (M,): `held`, `right`, `held_category`; entries to fill (N,): `fill`, `fill_category`.
    """

    held: np.ndarray
    right: np.ndarray
    held_category: np.ndarray
    fill: np.ndarray
    fill_category: np.ndarray

    def of(self, categories: np.ndarray) -> Side:
        """The same for some categories alone."""
        held, fill = np.isin(self.held_category, categories), np.isin(self.fill_category, categories)
        return Side(
            self.held[held],
            self.right[held],
            self.held_category[held],
            self.fill[fill],
            self.fill_category[fill],
        )


@dataclass(frozen=True)
class Certificate:
    """What was found for one category, or for the rest pooled."""

    categories: tuple[int, ...]
    pooled: bool
    threshold: float | None
    """Accept from this probability on; None: no threshold keeps the promise."""
    accepted: int = 0
    """Held-out entries accepted."""
    wrong: int = 0
    filled: int = 0
    bound: float | None = None
    """The precision of the filled entries is at least this, with the confidence asked for."""
    reachable: float | None = None
    """The highest precision that could have been promised; None if none of those tried."""


def p_value(accepted: np.ndarray, wrong: np.ndarray, filled: np.ndarray, precision: float) -> np.ndarray:
    """P(so few wrong among the held-out | one more wrong among the filled than the precision allows).

    Of n accepted held-out entries k are wrong; more than (1 - q)·N wrong ones among N filled entries would break
    the promise. P(X ≤ k), X hypergeometric: n draws from n + N entries with K₀ + k wrong ones,
    K₀ = ⌊(1 - q)·N⌋ + 1. As N grows, it becomes the binomial tail of Clopper and Pearson.
    """
    n, k, count = (np.asarray(values, dtype=np.int64) for values in (accepted, wrong, filled))
    too_many = np.floor((1 - precision) * count + 1e-9).astype(np.int64) + 1
    possible = (count > 0) & (n > 0) & (k < n)
    tail = hypergeom.cdf(k, n + count, np.minimum(too_many + k, n + count), n)
    return np.where(possible, tail, 1.0)


def most_wrong(accepted: np.ndarray, filled: np.ndarray, precision: float, risk: float) -> np.ndarray:
    """(J,) the most wrong held-out entries with which the promise still holds; -1 where not even none does."""
    n = np.asarray(accepted, dtype=np.int64)
    low, high = np.full(n.shape, -1, np.int64), n.copy()
    while (high - low > 1).any():
        middle = (low + high) // 2
        passes = (p_value(n, middle, filled, precision) <= risk) & (middle >= 0)
        low, high = np.where(passes, np.maximum(middle, low), low), np.where(passes, high, middle)
    zero = p_value(n, np.zeros_like(n), filled, precision) <= risk
    return np.where(zero, np.maximum(low, 0), -1)


def fewest(precision: float, risk: float) -> int:
    """Faultless acceptances without which no promise can be made: qⁿ ≤ risk. 59 for 0.95 at 95 % confidence."""
    return int(np.ceil(np.log(risk) / np.log(precision) - 1e-9))


def certify(side: Side, precision: float, risk: float) -> float | None:
    """The loosest threshold that keeps the promise, or None."""
    thresholds = candidates(side)
    if not len(thresholds):
        return None
    start = most_promising(side, thresholds, precision, risk)
    accepted, filled = _at_least(side.held, thresholds), _at_least(side.fill, thresholds)
    wrong = _at_least(side.held[~side.right], thresholds)
    fails = np.flatnonzero(p_value(accepted, wrong, filled, precision)[start:] > risk)
    passed = fails[0] if len(fails) else len(thresholds) - start
    return float(thresholds[start + passed - 1]) if passed else None


def candidates(side: Side) -> np.ndarray:
    """(J,) thresholds from strict to loose, each accepting GROWTH times as much as the one before."""
    both = np.concatenate([side.held, side.fill])
    ranked = -np.sort(-both[both >= LEAST_PROBABILITY])
    if not len(ranked):
        return ranked
    steps = int(np.ceil(np.log(len(ranked)) / np.log(GROWTH)))
    sizes = np.minimum(np.ceil(GROWTH ** np.arange(steps + 1)), len(ranked)).astype(int)
    return np.unique(ranked[sizes - 1])[::-1]


def most_promising(side: Side, thresholds: np.ndarray, precision: float, risk: float) -> int:
    """Where to start: the threshold most likely to pass if the probabilities are right.

    Of what it accepts, a share M / (M + N) is expected to be held out, less one standard deviation to be safe;
    Σ (1 - p) of it is expected to be wrong, and a Poisson number is.
    """
    both = -np.sort(-np.concatenate([side.held, side.fill]))
    share = len(side.held) / len(both)
    taken = _at_least(both, thresholds)
    accepted = np.floor(share * taken - np.sqrt(share * (1 - share) * taken)).clip(min=0).astype(np.int64)
    doubts = share * np.concatenate([[0.0], np.cumsum(1 - both)])[taken]
    chance = poisson.cdf(most_wrong(accepted, taken - accepted, precision, risk), doubts)
    return int(np.argmax(chance))


def _at_least(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """(J,) how many values reach each threshold."""
    return len(values) - np.searchsorted(np.sort(values), thresholds, side="left")


def certificates(side: Side, categories: int, precision: float, risk: float) -> list[Certificate]:
    """One per category with enough held-out entries, and one for the rest together."""
    alone = with_enough(side, categories, precision, risk)
    rest = np.setdiff1d(np.arange(categories), alone)
    scopes = [(np.array([category]), False) for category in alone] + ([(rest, True)] if len(rest) else [])
    return [certificate(side.of(scope), scope, pooled, precision, risk) for scope, pooled in scopes]


def with_enough(side: Side, categories: int, precision: float, risk: float) -> np.ndarray:
    """Categories that are judged on their own: by how many entries look sure, never by their labels."""
    every = np.concatenate([side.held_category, side.fill_category])
    sure = np.concatenate([side.held, side.fill]) >= precision
    share = len(side.held) / max(len(every), 1)
    expected = share * np.bincount(every[sure], minlength=categories)
    return np.flatnonzero(expected >= ENOUGH * fewest(precision, risk))


def certificate(side: Side, scope: np.ndarray, pooled: bool, precision: float, risk: float) -> Certificate:
    names = tuple(int(category) for category in scope)
    threshold = certify(side, precision, risk)
    if threshold is None:
        return Certificate(names, pooled, None, reachable=reachable(side, precision, risk))
    held, filled = side.held >= threshold, int((side.fill >= threshold).sum())
    accepted, wrong = int(held.sum()), int((held & ~side.right).sum())
    bound = lower_bound(accepted, wrong, filled, risk)
    return Certificate(names, pooled, threshold, accepted, wrong, filled, bound, precision)


def lower_bound(accepted: int, wrong: int, filled: int, risk: float) -> float:
    """The least precision of the filled entries that the held-out ones allow, with confidence 1 - risk."""
    low, high = 0, filled + 1  # wrong among the filled: `high` are ruled out, `low` are not
    while high - low > 1:
        middle = (low + high) // 2
        tail = float(hypergeom.cdf(wrong, accepted + filled, middle + wrong, accepted))
        low, high = (low, middle) if tail <= risk else (middle, high)
    return 1 - low / filled if filled else 0.0


def reachable(side: Side, below: float, risk: float) -> float | None:
    """The highest precision, in steps of 0.01 from 0.5, that could be promised."""
    for level in np.arange(round(below * 100 - 1e-6) - 1, 49, -1) / 100:
        if certify(side, float(level), risk) is not None:
            return float(level)
    return None
