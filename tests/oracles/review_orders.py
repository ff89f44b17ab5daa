"""The worth of asking, one suggestion at a time."""

from __future__ import annotations

import math


def value_of_each(p: list[float], category: list[int], known_present: list[int]) -> list[float]:
    worth = [0.0] * len(p)
    for c in set(category):
        members = [row for row in range(len(p)) if category[row] == c]
        members.sort(key=lambda row: (-bits(p[row]), row))
        for asked_before, row in enumerate(members):
            worth[row] = bits(p[row]) / math.sqrt(1 + known_present[c] + asked_before)
    return worth


def bits(p: float) -> float:
    return sum(-q * math.log2(q) for q in (p, 1 - p) if q > 0)
