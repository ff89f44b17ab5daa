"""The promise about precision: how far a threshold may go down before too much of what it accepts is wrong.

Held-out and unknown entries differ by a toss of a coin alone, so of all entries that a threshold accepts, those
held out are a random sample: the number of wrong ones among them is hypergeometric, whatever the model, and
however the entries of one image hang together. Thresholds are tried in an order that was fixed without looking at
a label or at who was held out, and the first that fails ends the search (fixed-sequence testing), so that trying
many costs no confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import beta, hypergeom

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
        taken = (self.right[held], self.held_category[held])
        return Side(self.held[held], *taken, self.fill[fill], self.fill_category[fill])

    @cached_property
    def both(self) -> np.ndarray:
        """All probabilities, the highest first."""
        return -np.sort(-np.concatenate([self.held, self.fill]))

    @cached_property
    def doubts(self) -> np.ndarray:
        """Σ (1 - p) over the first 0, 1, 2, … of `both`."""
        return np.concatenate([[0.0], np.cumsum(1 - self.both)])

    @cached_property
    def thresholds(self) -> np.ndarray:
        """(J,) from strict to loose, each accepting GROWTH times as much as the one before."""
        ranked = self.both[: int((self.both >= LEAST_PROBABILITY).sum())]
        if not len(ranked):
            return ranked
        steps = int(np.ceil(np.log(len(ranked)) / np.log(GROWTH)))
        sizes = np.minimum(np.ceil(GROWTH ** np.arange(steps + 1)), len(ranked)).astype(int)
        return np.unique(ranked[sizes - 1])[::-1]

    @cached_property
    def counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(J,) held-out entries that each threshold accepts, the wrong ones of them, and entries it would fill."""
        accepted, wrong = (_at_least(part, self.thresholds) for part in (self.held, self.held[~self.right]))
        return accepted, wrong, _at_least(self.both, self.thresholds) - accepted


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
    """The most that could have been promised of a few; None without a held-out entry that looks sure."""


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


def fewest(precision: float, risk: float) -> int:
    """Faultless acceptances without which no promise can be made: qⁿ ≤ risk. 59 for 0.95 at 95 % confidence."""
    return int(np.ceil(np.log(risk) / np.log(precision) - 1e-9))


def certify(side: Side, precision: float, risk: float) -> float | None:
    """The loosest threshold that keeps the promise, or None."""
    if not len(side.thresholds) or not len(side.held):
        return None
    start = most_promising(side, risk)
    accepted, wrong, filled = side.counts
    fails = np.flatnonzero(p_value(accepted, wrong, filled, precision)[start:] > risk)
    passed = fails[0] if len(fails) else len(side.thresholds) - start
    return float(side.thresholds[start + passed - 1]) if passed else None


def most_promising(side: Side, risk: float) -> int:
    """Where to start: the threshold that can promise most if the probabilities are right.

    Of what it accepts, a share M / (M + N) is expected to be held out, and Σ (1 - p) of that to be wrong; with
    these, Clopper and Pearson's lower bound is highest.
    """
    share = len(side.held) / len(side.both)
    taken = _at_least(side.both, side.thresholds)
    wrong, right = share * side.doubts[taken], share * (taken - side.doubts[taken])
    return int(np.argmax(beta.ppf(risk, np.maximum(right, 1e-9), wrong + 1)))


def _at_least(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """(J,) how many values reach each threshold."""
    return len(values) - np.searchsorted(np.sort(values), thresholds, side="left")


def certificates(side: Side, categories: int, precision: float, risk: float) -> list[Certificate]:
    """One per category with enough held-out entries, and one for the rest together."""
    alone = with_enough(side, categories, precision, risk)
    rest = np.setdiff1d(np.arange(categories), alone)
    own = _split(side, alone)
    found = [certificate(own[c], np.array([c]), False, precision, risk) for c in alone]
    if len(rest):
        found.append(certificate(side.of(rest) if len(alone) else side, rest, True, precision, risk))
    return found


def _split(side: Side, categories: np.ndarray) -> dict[int, Side]:
    """The parts of single categories, sorted once and not searched for each."""
    held, fill = (np.argsort(part, kind="stable") for part in (side.held_category, side.fill_category))
    parts = {}
    for category in categories:
        h = held[slice(*np.searchsorted(side.held_category[held], [category, category + 1]))]
        f = fill[slice(*np.searchsorted(side.fill_category[fill], [category, category + 1]))]
        parts[int(category)] = Side(
            side.held[h], side.right[h], side.held_category[h], side.fill[f], side.fill_category[f]
        )
    return parts


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
        return Certificate(names, pooled, None, reachable=reachable(side, risk))
    held, filled = side.held >= threshold, int((side.fill >= threshold).sum())
    accepted, wrong = int(held.sum()), int((held & ~side.right).sum())
    bound = lower_bound(accepted, wrong, filled, risk)
    return Certificate(names, pooled, threshold, accepted, wrong, filled, bound, reachable(side, risk))


def lower_bound(accepted: int, wrong: int, filled: int, risk: float) -> float:
    """The least precision of the filled entries that the held-out ones allow, with confidence 1 - risk."""
    low, high = 0, filled + 1  # wrong among the filled: `high` are ruled out, `low` are not
    while high - low > 1:
        middle = (low + high) // 2
        tail = float(hypergeom.cdf(wrong, accepted + filled, middle + wrong, accepted))
        low, high = (low, middle) if tail <= risk else (middle, high)
    return 1 - low / filled if filled else 0.0


def reachable(side: Side, risk: float) -> float | None:
    """The most that can be promised: the bound at the one threshold chosen without labels, in steps of 0.01."""
    if not len(side.thresholds) or not len(side.held):
        return None
    start = most_promising(side, risk)
    accepted, wrong, filled = (int(counts[start]) for counts in side.counts)
    if not accepted or not filled:
        return None
    return float(np.floor(lower_bound(accepted, wrong, filled, risk) * 100 + 1e-9) / 100)
