"""What methods cost, and how good the labels are that they fill in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from fewtags.benchmark.ablation_tables import variants_of
from fewtags.benchmark.grid import UPPER_BOUND, Score, Setting, average, known_shares, main_settings, shared_shares
from fewtags.benchmark.grid import upper_bound as bound_of
from fewtags.benchmark.table import NOTHING, Cell, Table, column_of, name, percent, points, shares

MODULES = {"intra": "within the image", "cross": "across images", "own": "its own predictions"}
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


@dataclass(frozen=True)
class Filled:
    """Pseudo labels of the last epoch, summed over the seeds."""

    method: str
    module: str
    known: float
    made: float
    precision: float | None
    recall: float | None
    """Of the present labels that were hidden. None when the truth is not available."""


def filled(setting: Setting) -> list[Filled]:
    """Each method and module that could make pseudo labels, at each known share."""
    methods = [*setting.methods(), *variants_of(setting, "ablation")]
    found = []
    for method in methods:
        for module in modules(setting.rows[setting.rows["method"] == method]):
            for known in known_shares(setting.rows, [method]):
                rows = setting.rows[(setting.rows["method"] == method) & (setting.rows["known"] == known)]
                found.append(_filled(rows, method, module, known))
    return found


def modules(rows: pd.DataFrame) -> list[str]:
    """Those whose count was logged; the order is that of the columns."""
    return [
        column.removesuffix("_made")
        for column in rows.columns
        if column.endswith("_made") and rows[column].notna().any()
    ]


def _filled(rows: pd.DataFrame, method: str, module: str, known: float) -> Filled:
    judged = rows.dropna(subset=[f"{module}_made", f"{module}_right", "hidden_present"])
    made, right = float(rows[f"{module}_made"].sum()), float(judged[f"{module}_right"].sum())
    judged_made, hidden = float(judged[f"{module}_made"].sum()), float(judged["hidden_present"].sum())
    precision = right / judged_made if judged_made else None
    return Filled(method, module, known, made, precision, right / hidden if hidden else None)


def reach(setting: Setting) -> dict[float, float]:
    """known → the share of hidden present labels in an image with another known present one."""
    rows = setting.rows.dropna(subset=["reachable", "hidden_present"])
    sums = rows.groupby("known")[["reachable", "hidden_present"]].sum().astype(float)
    sums = sums[sums["hidden_present"] > 0]
    return {
        float(str(known)): float(value) for known, value in (sums["reachable"] / sums["hidden_present"]).items()
    }


def pseudo_labels(results: pd.DataFrame) -> list[Table]:
    """Precision / recall of what each module filled in per known share, and the ceiling within images."""
    tables = [_filled_table(setting, filled(setting)) for setting in main_settings(results)]
    return [table for table in tables if len(table.rows) > 1]


def _filled_table(setting: Setting, found: Sequence[Filled]) -> Table:
    at, ceilings = sorted({entry.known for entry in found}), reach(setting)
    cells = {(entry.method, entry.module, entry.known): _quality(entry) for entry in found}
    rows = [
        (
            name(method),
            Cell(MODULES.get(module, module)),
            *(Cell(cells.get((method, module, k), NOTHING)) for k in at),
        )
        for method, module in dict.fromkeys((entry.method, entry.module) for entry in found)
    ]
    ceiling = [Cell(f"{100 * ceilings[known]:.0f} %" if known in ceilings else NOTHING) for known in at]
    last = (Cell("ceiling of recall"), Cell(MODULES["intra"]), *ceiling)
    notes = (
        "Precision / recall over the hidden labels in the last epoch, all seeds together. The ceiling is the "
        "share of hidden present labels in images with another known present label: evidence within an image "
        "reaches no other.",
    )
    columns = ("method", "evidence", *map(percent, at))
    return Table(f"Labels filled in, {setting.title}", columns, (*rows, last), notes)


def _quality(entry: Filled) -> str:
    if not entry.made:
        return "none made"
    if entry.recall is None or entry.precision is None:
        return f"{entry.made:,.0f} made"
    digits = 0 if entry.recall >= 0.0995 else 1
    return f"{100 * entry.precision:.0f} % / {100 * entry.recall:.{digits}f} %"
