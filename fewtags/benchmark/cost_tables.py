"""What methods cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from fewtags.benchmark.grid import UPPER_BOUND, Score, Setting, average, main_settings, shared_shares
from fewtags.benchmark.grid import upper_bound as bound_of
from fewtags.benchmark.table import NOTHING, Cell, Table, column_of, name, points, shares

SHORTEST = 0.05
"""Seconds below which a ratio of times means nothing."""


@dataclass(frozen=True)
class Cost:
    method: str
    seconds: float | None
    """Median training time of a run."""
    memory: float | None
    """GiB, the highest of its runs."""
    score: Score | None


def costs(setting: Setting, metric: str = "mAP") -> tuple[list[Cost], list[float]]:
    """Per method over the known shares that all of them have, and those shares; the upper bound last."""
    shared = shared_shares(setting.rows, setting.methods(), metric)
    found = [_cost(setting, method, shared, metric) for method in setting.methods()] if shared else []
    bound = _cost(setting, UPPER_BOUND, [], metric)
    return [*found, *([bound] if bound.score else [])], shared


def _cost(setting: Setting, method: str, shared: Sequence[float], metric: str) -> Cost:
    rows = setting.rows[setting.rows["method"] == method]
    own = rows if method == UPPER_BOUND else rows[rows["known"].isin(shared)]
    seconds, memory = own["training_seconds"].dropna(), own["peak_memory_gib"].dropna()
    return Cost(
        method,
        float(seconds.median()) if len(seconds) else None,
        float(memory.max()) if len(memory) else None,
        bound_of(rows, metric) if method == UPPER_BOUND else average(rows, method, shared, metric),
    )


def cost(results: pd.DataFrame) -> list[Table]:
    """mAP beside training time and memory."""
    tables = [_cost_table(setting, *costs(setting)) for setting in main_settings(results)]
    return [table for table in tables if table.rows]


def _cost_table(setting: Setting, found: Sequence[Cost], shared: Sequence[float]) -> Table:
    scores = column_of([c.score for c in found if c.method != UPPER_BOUND], len(setting.seeds))
    plain = next((c.seconds for c in found if c.method == "plain"), None)
    rows = [
        (name(c.method), cell, Cell(_seconds(c.seconds)), Cell(_times(c.seconds, plain)), Cell(_gib(c.memory)))
        for c, cell in zip(
            found, [*scores, *(Cell(points(c.score, 1)) for c in found[len(scores) :])], strict=True
        )
    ]
    over = f"mAP: {'average over ' if len(shared) > 1 else 'at '}{shares(shared)} known" if shared else "mAP"
    notes = (f"{over}; {UPPER_BOUND} with all labels. Time: median over runs; memory: the highest of them.",)
    columns = ("method", "mAP", "training", "times plain", "peak memory")
    return Table(f"Cost and quality, {setting.title}", columns, tuple(rows), notes)


def _seconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


def _times(seconds: float | None, plain: float | None) -> str:
    if seconds is None or plain is None or plain < SHORTEST:
        return NOTHING
    return f"{seconds / plain:.1f}" if seconds / plain < 10 else f"{seconds / plain:,.0f}"


def _gib(memory: float | None) -> str:
    return NOTHING if memory is None else f"{memory:.1f} GiB"
