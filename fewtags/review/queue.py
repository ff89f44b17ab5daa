"""The next question and how many are left, for each set of filters that somebody looks at."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from fewtags.review.filters import Filters
from fewtags.review.index import Index

OPEN, YES, NO, SKIPPED = range(4)
STATES = ("open", "yes", "no", "skipped")
VIEWS_KEPT = 4
FIRST_LOOK, LONGEST_LOOK = 4096, 1 << 20
FEW_MATCH = 20
"""Few: fewer than one row in so many."""
HELD_SECONDS = 120.0


@dataclass
class View:
    """The rows that pass one set of filters, and how many of them are in each state."""

    mask: np.ndarray
    counts: np.ndarray
    """(states,) int64."""
    looked: dict[str, int] = field(default_factory=dict)
    """Per order the place before which no matching row is open."""
    ordered: tuple[str, np.ndarray] | None = None
    """The matching rows in the order last asked for, if few match: else each question would search for them."""

    def in_order(self, order: str, index: Index) -> np.ndarray:
        """The rows to look through: all, or if few match, only those."""
        if self.counts.sum() * FEW_MATCH >= len(index):
            return index.orders[order]
        if self.ordered is None or self.ordered[0] != order:
            matching = np.flatnonzero(self.mask).astype(np.int32)
            self.ordered = order, matching[np.argsort(index.places[order][matching])]
            self.looked.clear()
        return self.ordered[1]

    def recount(self, state: np.ndarray) -> None:
        counts = [np.count_nonzero((state == number) & self.mask) for number in range(1, len(STATES))]
        self.counts = np.array([np.count_nonzero(self.mask) - sum(counts), *counts])
        self.looked.clear()


class Queue:
    """`state` (N,) uint8 is the state of every row, shared by all views."""

    def __init__(self, index: Index):
        self.index = index
        self.state = np.zeros(len(index), dtype=np.uint8)
        self._views: OrderedDict[Filters, View] = OrderedDict()
        self._order: str | None = None
        self._held: dict[str, tuple[float, frozenset[int]]] = {}

    def view(self, filters: Filters) -> View:
        if filters not in self._views:
            view = View(filters.mask(self.index), np.zeros(len(STATES), np.int64))
            view.recount(self.state)
            self._views[filters] = view
        self._views.move_to_end(filters)
        while len(self._views) > VIEWS_KEPT:
            self._views.popitem(last=False)
        return self._views[filters]

    def next(
        self, filters: Filters, order: str, wanted: Collection[int], count: int, tab: str, after: int | None = None
    ) -> list[int]:
        """Up to `count` matching rows in order whose state is wanted, without those that another tab holds.

        `after`: only rows that come later than this one, to walk through answered ones.
        """
        self._look_at(order)
        view = self.view(filters)
        rows = view.in_order(order, self.index)
        is_wanted = np.isin(np.arange(len(STATES)), list(wanted))
        only_open = set(wanted) == {OPEN}
        place = view.looked.get(order, 0) if only_open else 0
        for found_at in np.flatnonzero(rows == after)[:1] if after is not None else ():
            place = max(place, int(found_at) + 1)
        held = self._held_by_others(tab)
        found: list[int] = []
        look, first = FIRST_LOOK, None
        while place < len(rows) and len(found) < count:
            part = rows[place : place + look]
            hits = np.flatnonzero(view.mask[part] & is_wanted[self.state[part]])
            if first is None:
                first = place + int(hits[0]) if len(hits) else None
            free = (row for row in map(int, part[hits]) if row not in held)
            found += islice(free, count - len(found))
            place, look = place + len(part), min(look * 2, LONGEST_LOOK)
        if only_open and after is None:
            view.looked[order] = len(rows) if first is None else first
        self._held[tab] = (time.monotonic(), frozenset(found))
        return found

    def _look_at(self, order: str) -> None:
        if self._order not in (None, order):
            self.index.rest(self._order)
        self._order = order

    def mark(self, row: int, state: int) -> None:
        before = self.state[row]
        self.state[row] = state
        for view in self._views.values():
            if view.mask[row]:
                view.counts[before] -= 1
                view.counts[state] += 1
                if state == OPEN:
                    view.looked.clear()

    def mark_many(self, rows: np.ndarray, states: np.ndarray | int) -> None:
        self.state[rows] = states
        for view in self._views.values():
            view.recount(self.state)

    def _held_by_others(self, tab: str) -> set[int]:
        """Rows on the screens of other tabs: two people are not asked the same question at the same time."""
        now = time.monotonic()
        self._held = {name: held for name, held in self._held.items() if now - held[0] < HELD_SECONDS}
        return {row for name, (_, rows) in self._held.items() if name != tab for row in rows}
