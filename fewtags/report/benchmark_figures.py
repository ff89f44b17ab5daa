"""From the rows of a benchmark to its charts: what is drawn, and the words above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from fewtags.benchmark import paper
from fewtags.benchmark.ablation_tables import BLOCKS, departure_comparisons, variants_of
from fewtags.benchmark.comparison_tables import against, side_by_side, with_places
from fewtags.benchmark.cost_tables import costs
from fewtags.benchmark.filled_tables import Filled, filled, reach
from fewtags.benchmark.grid import UPPER_BOUND, Setting, known_shares, score, upper_bound
from fewtags.benchmark.statistics import Comparison, paired_differences
from fewtags.benchmark.table import percent, shares
from fewtags.report import benchmark_charts as charts
from fewtags.report import benchmark_rows as rows_charts
from fewtags.report import benchmark_scatter as scatter
from fewtags.report.benchmark_axes import Look, looks
from fewtags.report.benchmark_words import listed, ranked, subject_of

BASELINE = "plain"
WHOLE = "hst"
MOST_SHARES_DRAWN = 4


@dataclass(frozen=True)
class Chart:
    title: str
    caption: str
    svg: Markup
    wide: bool = False


def score_charts(setting: Setting) -> list[Chart]:
    """mAP over the known share and what each method gains on plain; with one share, a row per method."""
    methods = ranked(setting)
    if not methods:
        return []
    at, look = known_shares(setting.rows, methods), looks(methods)
    if len(at) < 2:
        return [_dots(setting, methods, at[0], look)]
    found = [_curves(setting, methods, look), _gains(setting, methods, look)]
    return [chart for chart in found if chart is not None]


def _dots(setting: Setting, methods: Sequence[str], known: float, look: dict[str, Look]) -> Chart:
    at = setting.rows[setting.rows["known"] == known]
    values = {method: at[at["method"] == method]["mAP"].dropna().astype(float).tolist() for method in methods}
    drawn, bound = {method: found for method, found in values.items() if found}, upper_bound(setting.rows)
    title = f"mAP with {percent(known)} of the labels known"
    svg = rows_charts.dots_chart(drawn, look, title, bound.mean if bound else None)
    return Chart(title, "a dot per seed, a bar at their mean", svg)


def _curves(setting: Setting, methods: Sequence[str], look: dict[str, Look]) -> Chart | None:
    lines = [line for method in methods if (line := _line(setting, method)) is not None]
    bound = upper_bound(setting.rows)
    if not lines:
        return None
    svg = charts.lines_chart(lines, look, "mAP over the share of known labels", bound.mean if bound else None)
    return Chart("mAP", "over the share of labels known; bands: standard deviation over seeds" + _grey(look), svg)


def _grey(look: dict[str, Look]) -> str:
    others = [method for method, own in look.items() if not own.named]
    return f". Grey: {listed(others)}" if others else ""


def _line(setting: Setting, method: str) -> charts.Line | None:
    found = {known: score(setting.rows, method, known) for known in known_shares(setting.rows, [method])}
    kept = {known: value for known, value in found.items() if value is not None}
    values = pd.Series({known: value.mean for known, value in kept.items()}, dtype=float)
    spread = pd.Series({known: value.std for known, value in kept.items()}, dtype=float)
    return charts.Line(method, values, spread) if len(values) else None


def _gains(setting: Setting, methods: Sequence[str], look: dict[str, Look]) -> Chart | None:
    """The mean paired difference to plain, with its deviation over the seeds."""
    if BASELINE not in methods:
        return None
    lines = []
    for method in methods:
        per_share = paired_differences(setting.rows, method, BASELINE, BLOCKS).groupby(level="known")
        if method != BASELINE and len(per_share):
            lines.append(charts.Line(method, per_share.mean(), per_share.std()))
    if not lines:
        return None
    title = f"Gain over {BASELINE}"
    svg = charts.lines_chart(lines, look, title + " over the share of known labels", zero=BASELINE)
    return Chart(title, "points of mAP, paired: the same images, known labels and seed", svg)


def order(setting: Setting) -> Chart | None:
    if paper.dataset_of(setting.data) is None:
        return None
    table, shared = side_by_side(setting)
    if len(table) < 2:
        return None
    svg = charts.order_chart(with_places(table), looks(ranked(setting)), "Places here and in the paper")
    return Chart("Place by mAP", f"here and in the paper, over {shares(shared)} known", svg)


def thresholds(setting: Setting) -> Chart | None:
    """Fixed minus learned, per known share; the paper's at the same shares."""
    fixed = variants_of(setting, "threshold")
    ours = {
        percent(k): line for k in known_shares(setting.rows, fixed) if len(line := _fixed(setting, fixed, k)) > 1
    }
    if not ours:
        return None
    names = dict(list(ours.items())[:MOST_SHARES_DRAWN])
    svg = charts.thresholds_chart(names, _published(setting, list(names)), "Fixed against learned thresholds")
    return Chart(
        "Fixed against learned thresholds", "points of mAP above or below learned ones, per share known", svg
    )


def _fixed(setting: Setting, fixed: Sequence[str], known: float) -> pd.Series:
    means = {
        float(method.removeprefix("hst.threshold.")): differences.mean()
        for method in fixed
        if len(
            differences := paired_differences(setting.rows[setting.rows["known"] == known], method, WHOLE, BLOCKS)
        )
    }
    return pd.Series(means, dtype=float)


def _published(setting: Setting, shown: Sequence[str]) -> dict[str, pd.Series]:
    dataset = paper.dataset_of(setting.data)
    table = paper.thresholds()
    table = table[table["dataset"] == (dataset.name if dataset else "")]
    found = {}
    for known, rows in table.groupby("known"):
        if percent(float(str(known))) in shown:
            values = rows.set_index("method")["mAP"]
            fixed = values.drop(WHOLE) - values[WHOLE]
            fixed.index = pd.Index([float(name.removeprefix("hst.threshold.")) for name in fixed.index])
            found[f"paper {percent(float(str(known)))}"] = fixed
    return found


def departures(setting: Setting) -> Chart | None:
    found = sorted(departure_comparisons(setting), key=lambda c: -(c.difference or 0.0))
    rows = _differences([(c.first.removeprefix("hst."), c) for c in found])
    if not rows:
        return None
    svg = rows_charts.forest_chart(rows, "Each departure undone, against hst", "mAP minus hst's", digits=2)
    return Chart("Each choice of the paper or its code, put into hst", _forest_caption(found), svg)


def test_charts(results: pd.DataFrame) -> Chart | None:
    """The method in question against every other."""
    if results.empty:
        return None
    subject = subject_of(results)
    found = sorted(against(results, subject), key=lambda c: -(c.difference or 0.0))
    rows = _differences([(c.second, c) for c in found])
    if not rows:
        return None
    svg = rows_charts.forest_chart(
        rows, f"{subject} against each other method", f"mAP of {subject} minus the other's"
    )
    return Chart(f"{subject} against each", _forest_caption(found), svg)


def _differences(named: Sequence[tuple[str, Comparison]]) -> list[rows_charts.Difference]:
    return [
        rows_charts.Difference(name, c.difference, c.low, c.high, c.verdict)
        for name, c in named
        if c.difference is not None
    ]


def _forest_caption(found: Sequence[Comparison]) -> str:
    decided = "filled: decided" if any(c.decidable for c in found) else "hollow: not decidable"
    return f"mean paired difference in points of mAP and its 95 % interval; {decided}"


def quality(setting: Setting) -> list[Chart]:
    """Precision over recall of filled labels at the lowest and a middle known share; the table has all."""
    entries = [entry for entry in filled(setting) if "." not in entry.method]
    entries = [entry for entry in entries if entry.precision is not None and entry.recall is not None]
    at = sorted({entry.known for entry in entries})
    chosen = at if len(at) < 3 else [at[0], at[len(at) // 2]]
    return [_quality(setting, [e for e in entries if e.known == known], known) for known in chosen]


def _quality(setting: Setting, entries: Sequence[Filled], known: float) -> Chart:
    look = looks(ranked(setting))
    points = [
        scatter.Point(f"{e.method} {e.module}", e.recall or 0.0, e.precision or 0.0, look[e.method])
        for e in entries
    ]
    title = f"{percent(known)} of the labels known"
    svg = scatter.quality_chart(points, reach(setting).get(known), f"Precision over recall, {title}")
    return Chart(title, "share of the filled labels that are right, over the share of hidden ones found", svg)


def cost(setting: Setting) -> Chart | None:
    found, shared = costs(setting)
    look = looks(ranked(setting))
    points = [
        scatter.Point(c.method, c.seconds, c.score.mean, look[c.method])
        for c in found
        if c.method != UPPER_BOUND and c.seconds and c.score is not None
    ]
    if not points:
        return None
    bound = upper_bound(setting.rows)
    svg = scatter.cost_chart(points, bound.mean if bound else None, "mAP over training time")
    return Chart("mAP over training time", f"median of the runs; mAP over {shares(shared)} known", svg, wide=True)
