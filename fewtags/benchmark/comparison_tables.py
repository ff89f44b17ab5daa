"""Who is ahead of whom: paired tests, and whether our order of methods is the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from fewtags.benchmark import paper
from fewtags.benchmark.ablation_tables import BLOCKS, paired, paper_notes
from fewtags.benchmark.contradictions import contradictions
from fewtags.benchmark.grid import Setting, average, main_settings, score, shared_shares
from fewtags.benchmark.score_table import METRICS
from fewtags.benchmark.statistics import (
    FEWEST_BLOCKS,
    LEVEL,
    NESTED,
    Comparison,
    compare,
    holm,
    smallest_adjusted,
)
from fewtags.benchmark.table import (
    COMPARISON_COLUMNS,
    NOTHING,
    Cell,
    Table,
    comparison_cells,
    name,
    p_value,
    percent,
    shares,
    without_empty_columns,
)

FEWEST_RANKED = 3


def pooled(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of each data set's main setting."""
    found = [setting.rows for setting in main_settings(results)]
    return pd.concat(found) if found else results


def against(results: pd.DataFrame, method: str) -> list[Comparison]:
    """method - other, for every other method it shares a block with; Holm's correction over these."""
    rows = pooled(results)
    others = dict.fromkeys(m for setting in main_settings(results) for m in setting.methods() if m != method)
    found = [compare(rows, method, other, BLOCKS) for other in others]
    return holm([comparison for comparison in found if comparison.blocks])


def tests(results: pd.DataFrame) -> list[Table]:
    """hst against each other method, then plain against each."""
    made = [_tests(method, against(results, method)) for method in ("hst", "plain")]
    return [table for table in made if table.rows]


def _tests(method: str, found: Sequence[Comparison]) -> Table:
    rows = tuple((name(comparison.second), *comparison_cells(comparison)) for comparison in found)
    notes = [
        f"Positive: {method} is ahead. Differences in mAP, paired in blocks of data × seed × known share.",
        NESTED,
    ]
    table = Table(f"{method} against each", ("against", *COMPARISON_COLUMNS), rows, (*notes, *_power_notes(found)))
    return without_empty_columns(table)


def _power_notes(found: Sequence[Comparison]) -> list[str]:
    """What this many blocks cannot show."""
    notes = []
    if any(not comparison.decidable for comparison in found):
        notes.append(f"Not decidable: fewer than {FEWEST_BLOCKS} blocks have both methods.")
    least = smallest_adjusted(found)
    if least is not None and least >= LEVEL:
        notes.append(f"With so few blocks and so many comparisons the smallest possible p is {p_value(least)}.")
    return notes


@dataclass(frozen=True)
class Agreement:
    metric: str
    where: str
    methods: int
    spearman: float | None
    kendall: float | None


def agreements(setting: Setting) -> list[Agreement]:
    """Rank agreement with the paper per metric and known share, on averages, and for the ablations."""
    found = [_at_share(setting, metric, known) for metric in METRICS for known in _published_shares(setting)]
    found += [_on_average(setting, metric, False) for metric in METRICS]
    found.append(_on_average(setting, "mAP", True))
    return [agreement for agreement in found if agreement.methods >= FEWEST_RANKED]


def _published_shares(setting: Setting) -> list[float]:
    return [known for known in sorted(setting.rows["known"].unique()) if known in set(paper.results()["known"])]


def published(setting: Setting, metric: str, known: Sequence[float]) -> pd.Series:
    """method → the paper's mean over these known shares; methods without all of them are left out."""
    dataset = paper.dataset_of(setting.data)
    if dataset is None:
        return pd.Series(dtype=float)
    table = paper.results()
    table = table[(table["dataset"] == dataset.name) & (table["metric"] == metric) & table["known"].isin(known)]
    return table.pivot(index="method", columns="known", values="value").dropna().mean(axis=1)


def _at_share(setting: Setting, metric: str, known: float) -> Agreement:
    theirs = published(setting, metric, [known])
    done = set(setting.rows["method"][setting.rows["known"] == known])
    setting, _ = paired(setting, [m for m in setting.methods() if m in theirs and m in done], [known])
    ours = {method: score(setting.rows, method, known, metric) for method in setting.methods()}
    return _agreement(metric, percent(known), {m: s.mean for m, s in ours.items() if s}, theirs)


def _on_average(setting: Setting, metric: str, ablated: bool) -> Agreement:
    """Ours over the known shares that all of the methods have, theirs over all nine."""
    dataset = paper.dataset_of(setting.data)
    table = paper.averages()
    theirs = table[table["dataset"] == (dataset.name if dataset else "")].set_index("method")[metric].dropna()
    candidates = [
        m for m in setting.methods(True) if m in theirs and (("." in m) == ablated or (ablated and m == "hst"))
    ]
    shared = shared_shares(setting.rows, candidates, metric)
    setting, _ = paired(setting, candidates, shared)
    ours = {method: average(setting.rows, method, shared, metric) for method in candidates}
    where = f"{shares(shared)}, paper's average" if shared else NOTHING
    return _agreement(
        f"{metric}, ablations" if ablated else metric, where, {m: s.mean for m, s in ours.items() if s}, theirs
    )


def _agreement(metric: str, where: str, ours: dict[str, float], theirs: pd.Series) -> Agreement:
    both = [method for method in ours if method in theirs]
    if len(both) < FEWEST_RANKED:
        return Agreement(metric, where, len(both), None, None)
    mine, published_values = [ours[method] for method in both], [float(theirs[method]) for method in both]
    rho, tau = stats.spearmanr(mine, published_values), stats.kendalltau(mine, published_values)
    return Agreement(metric, where, len(both), float(rho.statistic), float(tau.statistic))


def order(results: pd.DataFrame) -> list[Table]:
    """Our order of methods beside the paper's, and how well they agree."""
    tables = []
    for setting in main_settings(results):
        if paper.dataset_of(setting.data) is not None:
            tables += [_places(setting), _agreement_table(setting)]
    return [table for table in tables if len(table.rows) > 1]


def side_by_side(setting: Setting) -> tuple[pd.DataFrame, list[float]]:
    """method → ours, theirs (mAP over the same known shares), best of ours first; and those shares.

    The shares are those that all methods have which the paper lists too; the seeds those that all of them have.
    """
    listed = set(published(setting, "mAP", _published_shares(setting)).index)
    methods = [method for method in setting.methods() if method in listed]
    shared = [known for known in shared_shares(setting.rows, methods) if known in _published_shares(setting)]
    theirs = published(setting, "mAP", shared)
    setting, _ = paired(setting, methods, shared)
    ours = {method: average(setting.rows, method, shared) for method in methods}
    pairs = {method: (found.mean, theirs[method]) for method, found in ours.items() if found and method in theirs}
    table = pd.DataFrame.from_dict(pairs, orient="index", columns=["ours", "theirs"])
    return table.sort_values("ours", ascending=False), shared


def order_agreement(setting: Setting) -> Agreement:
    """Of the methods' order in mAP over the same known shares."""
    table, shared = side_by_side(setting)
    ours = {str(method): float(value) for method, value in table["ours"].items()}
    return _agreement("mAP", shares(shared), ours, table["theirs"])


def with_places(table: pd.DataFrame) -> pd.DataFrame:
    """ours, theirs, and the place of each: 1 is the best, equals share the better place."""
    return table.join(table.rank(ascending=False, method="min").add_suffix("_place"))


def _places(setting: Setting) -> Table:
    table, shared = side_by_side(setting)
    rows = tuple(
        (name(str(method)), Cell(f"{ours:.1f}"), Cell(f"{place:.0f}"), Cell(f"{theirs:.1f}"), Cell(f"{there:.0f}"))
        for method, ours, theirs, place, there in with_places(table).itertuples()
    )
    what = f"mean over the same {shares(shared)} known" if shared else ""
    columns = ("method", "mAP here", "place here", "mAP in the paper", "place there")
    _, seeds = paired(setting, [str(method) for method in table.index], shared)
    scope = f"Ours: {seeds}." if seeds else ""
    return Table(f"Order of methods, {setting.title}", columns, rows, tuple(paper_notes(setting, what)), scope)


def _agreement_table(setting: Setting) -> Table:
    rows = tuple(
        (Cell(a.metric), Cell(a.where), Cell(str(a.methods)), Cell(_rank(a.spearman)), Cell(_rank(a.kendall)))
        for a in agreements(setting)
    )
    notes = ("Rank correlation between our methods' order and the paper's: 1 the same, 0 unrelated, −1 reversed.",)
    columns = ("figure", "known", "methods", "Spearman ρ", "Kendall τ")
    return Table(f"Agreement in order, {setting.title}", columns, rows, notes)


def _rank(value: float | None) -> str:
    return NOTHING if value is None or value != value else f"{value:.2f}".replace("-", "−")


def contradiction_table() -> Table:
    rows = tuple(tuple(Cell(str(text)) for text in row) for row in contradictions().itertuples(index=False))
    notes = ("Computed from the published tables, and from every difference that the text states in figures.",)
    return Table("Where the paper contradicts itself", ("where", "it says", "but its tables say"), rows, notes)
