"""Which suggestions are asked about: by category, probability, decision and origin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fewtags.completion.suggestions import DECISIONS, ORIGINS
from fewtags.review.index import Index

ROWS_AT_A_TIME = 1_000_000
"""Bounds the arrays that a filter needs for a moment."""
FEW_CODES = 15


@dataclass(frozen=True)
class Filters:
    """Nothing named: everything passes."""

    categories: frozenset[int] = frozenset()
    low: float = 0.0
    high: float = 1.0
    decisions: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    def mask(self, index: Index) -> np.ndarray:
        """(N,) bool: the rows that pass."""
        passes = np.empty(len(index), dtype=bool)
        allowed = self._allowed_categories(index.facts["categories"]), self._allowed_kinds()
        for part in slices(len(index)):
            passes[part] = self._passing(index, part, *allowed)
        return passes

    def _passing(
        self, index: Index, part: slice, categories: np.ndarray | None, kinds: np.ndarray | None
    ) -> np.ndarray:
        passes = np.ones(part.stop - part.start, dtype=bool)
        if categories is not None:
            passes &= _any_of(index.category[part], categories)
        if kinds is not None:
            passes &= _any_of(index.kind[part], kinds)
        if self.low > 0:
            passes &= index.probability[part] >= np.float32(self.low)
        if self.high < 1:
            passes &= index.probability[part] <= np.float32(self.high)
        return passes

    def _allowed_categories(self, count: int) -> np.ndarray | None:
        if not self.categories:
            return None
        return np.isin(np.arange(count), list(self.categories))

    def _allowed_kinds(self) -> np.ndarray | None:
        """(decisions x origins,) bool, as `kind` counts them."""
        if not self.decisions and not self.origins:
            return None
        decisions = [not self.decisions or name in self.decisions for name in DECISIONS]
        origins = [not self.origins or name in self.origins for name in ORIGINS]
        return np.outer(decisions, origins).ravel()


def _any_of(codes: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """allowed[codes]; comparing with each of a few codes is many times faster than looking them up."""
    wanted = np.flatnonzero(allowed)
    if len(wanted) > FEW_CODES:
        return allowed[codes]
    found = np.zeros(len(codes), dtype=bool)
    for code in wanted.astype(codes.dtype):
        found |= codes == code
    return found


def slices(count: int) -> Iterator[slice]:
    for start in range(0, count, ROWS_AT_A_TIME):
        yield slice(start, min(count, start + ROWS_AT_A_TIME))
