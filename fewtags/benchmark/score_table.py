"""Scores of some methods per known share and on average: the form of most of the paper's tables."""

from __future__ import annotations

from collections.abc import Sequence

from fewtags.benchmark.grid import Setting, average, known_shares, score, shared_shares
from fewtags.benchmark.table import Cell, Table, average_note, column_of, percent, rows_from, seeds_note, shares

METRICS = ("mAP", "OF1", "CF1")


def score_table(
    setting: Setting,
    lines: Sequence[tuple[Cell, str]],
    title: str,
    metric: str = "mAP",
    first: str = "method",
    at: Sequence[float] | None = None,
) -> Table:
    """A row per line (its name, its method), a column per known share, and the average over the shared ones.

    `at` names the shares to show; without it, every share that one of the methods has.
    """
    rows, methods, seeds = setting.rows, [method for _, method in lines], len(setting.seeds)
    shown = known_shares(rows, methods) if at is None else list(at)
    shared = [known for known in shared_shares(rows, methods, metric) if known in shown]
    columns = [column_of([score(rows, method, known, metric) for method in methods], seeds) for known in shown]
    headings = [percent(known) for known in shown]
    if len(shared) > 1:
        columns.append(column_of([average(rows, method, shared, metric) for method in methods], seeds))
        headings.append(f"average of {shares(shared)}" if shared != shown else "average")
    body = rows_from([[cell for cell, _ in lines], *columns])
    notes = [*seeds_note(setting.seeds, body), average_note(shared, shown)]
    return Table(title, (first, *headings), body, tuple(note for note in notes if note))
