"""The tables of a benchmark, by name: results → tables. The page and docs/results.md show these and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from fewtags.benchmark.ablation_tables import ablation, departures, prototypes, thresholds, thresholds_apart
from fewtags.benchmark.ablation_tables import settings as settings_changed
from fewtags.benchmark.comparison_tables import contradiction_table, order, tests
from fewtags.benchmark.cost_tables import cost
from fewtags.benchmark.filled_tables import departure_labels, pseudo_labels
from fewtags.benchmark.grid import UPPER_BOUND, Setting, main_settings, settings, upper_bound
from fewtags.benchmark.score_table import METRICS, score_table
from fewtags.benchmark.table import Cell, Table, name, points


def main(results: pd.DataFrame) -> list[Table]:
    """mAP, OF1 and CF1 of each method per known share and on average, for each data set."""
    tables = [main_table(setting, metric) for setting in main_settings(results) for metric in METRICS]
    return [table for table in tables if table.rows]


def main_table(setting: Setting, metric: str) -> Table:
    title, seeds = f"{metric}, {setting.title}", len(setting.seeds)
    table = score_table(setting, [(name(method), method) for method in setting.methods()], title, metric)
    bound = points(upper_bound(setting.rows, metric), seeds)
    if upper_bound(setting.rows, metric) is None:
        return table
    if not table.rows:
        return Table(title, ("method", "all known"), ((name(UPPER_BOUND), Cell(bound)),))
    last = (name(UPPER_BOUND), *(Cell(bound) for _ in table.columns[1:]))
    note = f"{UPPER_BOUND} saw every label: an upper bound, the same in each column, and never called the best."
    return Table(title, table.columns, (*table.rows, last), (*table.notes, note))


def elsewhere(results: pd.DataFrame) -> list[Table]:
    """mAP in settings with fewer rows than their data set's main one: one larger run, say."""
    chosen = [setting.key for setting in main_settings(results)]
    return [main_table(setting, "mAP") for setting in settings(results) if setting.key not in chosen]


def _contradictions(_results: pd.DataFrame) -> list[Table]:
    return [contradiction_table()]


TABLES: dict[str, Callable[[pd.DataFrame], Sequence[Table]]] = {
    "main": main,
    "elsewhere": elsewhere,
    "ablation": ablation,
    "thresholds": thresholds,
    "thresholds_apart": thresholds_apart,
    "prototypes": prototypes,
    "departures": departures,
    "departure_labels": departure_labels,
    "settings": settings_changed,
    "pseudo_labels": pseudo_labels,
    "cost": cost,
    "tests": tests,
    "order": order,
    "contradictions": _contradictions,
}
