"""How many labels methods fill in, and how many of them are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from fewtags.benchmark.ablation_tables import WHOLE, paired, variants_of
from fewtags.benchmark.grid import Setting, known_shares, main_settings
from fewtags.benchmark.table import NOTHING, Cell, Table, name, percent
from fewtags.methods.variants import summary

MODULES = {"intra": "within the image", "cross": "across images", "own": "its own predictions"}


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
    """Each method, and each of the paper's ablations, at each known share."""
    return filled_by(setting, [*setting.methods(), *variants_of(setting, "ablation")])


def filled_by(setting: Setting, methods: Sequence[str]) -> list[Filled]:
    """Each of these methods with each module of it that could make pseudo labels, at each known share."""
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


def departure_labels(results: pd.DataFrame) -> list[Table]:
    """What hst fills in with each choice of the paper or of the released code in place of ours."""
    return [
        _departure_table(setting, known)
        for setting in main_settings(results)
        for known in known_shares(setting.rows, variants_of(setting, "departure"))
    ]


def _departure_table(setting: Setting, known: float) -> Table:
    at_share = replace(setting, rows=setting.rows[setting.rows["known"] == known])
    methods = [WHOLE, *variants_of(at_share, "departure")]
    same, seeds = paired(at_share, methods, [known])
    cells = {(e.method, e.module): _count(e, same.rows) for e in filled_by(same, methods)}
    rows = tuple(
        (
            name(method),
            Cell(summary(method)),
            *(Cell(cells.get((method, module), NOTHING)) for module in MODULES),
        )
        for method in methods
    )
    notes = (
        "Labels filled in a run's last epoch, and how many of them are right. A dash: the module is not there.",
    )
    title = f"Labels that departures fill, {percent(known)} known, {setting.title}"
    return Table(title, ("variant", "what", *MODULES.values()), rows, notes, seeds and f"Ours: {seeds}.")


def _count(entry: Filled, rows: pd.DataFrame) -> str:
    """`5,695, 70 %`: of a run, on average."""
    runs = int((rows["method"] == entry.method).sum())
    right = "" if entry.precision is None else f", {100 * entry.precision:.0f} %"
    return f"{entry.made / runs:,.0f}{right}"
