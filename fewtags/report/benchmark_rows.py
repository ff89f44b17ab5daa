"""Charts with a row per method: dots per seed, and differences with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes

from fewtags.benchmark.table import signed
from fewtags.report.benchmark_axes import (
    Look,
    name_at_right,
    rows_axis,
    rows_figure,
)
from fewtags.report.charts import STYLE, TEXT, inline_svg
from fewtags.report.palette import STAND_INS


def dots_chart(
    rows: Mapping[str, Sequence[float]], look: Mapping[str, Look], title: str, bound: float | None
) -> Markup:
    """One row per method, best first: a dot per seed and a bar at the mean. For a single known share."""
    with matplotlib.rc_context(STYLE):
        figure, axes = rows_figure(len(rows))
        for place, (method, values) in enumerate(rows.items()):
            colour = look[method].drawn
            axes.plot(
                values, [place] * len(values), "o", color=colour, markersize=6, alpha=0.55, markeredgewidth=0
            )
            axes.plot([sum(values) / len(values)], [place], "|", color=colour, markersize=17, markeredgewidth=2.6)
        rows_axis(axes, list(rows))
        if bound is not None:
            axes.axvline(bound, color=STAND_INS["muted"], linewidth=1.4, linestyle=(0, (5, 3)))
            axes.annotate(
                f"full_labels {bound:.1f}", (bound, -0.5), (-5, 2), textcoords="offset points", ha="right",
                color=STAND_INS["muted"], fontsize=TEXT - 1.5,
            )  # fmt: skip
        return inline_svg(figure, title)


TONES = {"ahead": "intra", "behind": "wrong"}


@dataclass(frozen=True)
class Difference:
    name: str
    mean: float
    low: float | None
    high: float | None
    verdict: str


def forest_chart(rows: Sequence[Difference], title: str, zero: str, digits: int = 1) -> Markup:
    """Mean differences with their intervals around 0; filled marks are decided, hollow ones are not."""
    with matplotlib.rc_context(STYLE):
        figure, axes = rows_figure(len(rows), right=0.89)
        axes.axvline(0, color=STAND_INS["ink"], linewidth=1.2)
        limits = _limits([row.mean for row in rows])
        for place, row in enumerate(rows):
            _draw_difference(axes, place, row, limits, digits)
        rows_axis(axes, [row.name for row in rows])
        axes.set_xlim(*limits)
        axes.set_xlabel(zero, color=STAND_INS["muted"], loc="right", labelpad=2)
        return inline_svg(figure, title)


def _draw_difference(axes: Axes, place: int, row: Difference, limits: tuple[float, float], digits: int) -> None:
    colour = STAND_INS[TONES.get(row.verdict, "muted")]
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [place, place], color=colour, linewidth=2.2, alpha=0.75)
    mark = "<" if row.mean < limits[0] else ">" if row.mean > limits[1] else "o"
    face = colour if row.verdict in TONES else STAND_INS["paper"]
    edge = 0.02 * (limits[1] - limits[0])
    inside = min(max(row.mean, limits[0] + edge), limits[1] - edge)
    axes.plot(inside, place, mark, color=colour, markersize=8, markerfacecolor=face, markeredgewidth=1.6)
    name_at_right(axes, place, signed(row.mean, digits), colour)


def _limits(means: Sequence[float]) -> tuple[float, float]:
    """From the least to the most, 0 included; one far from all others gets an arrow and does not flatten them."""
    sizes = sorted(map(abs, means))
    most = max(2.5 * sizes[(3 * (len(sizes) - 1)) // 4], 0.3)
    low, high = (max(-most, min(0.0, *means)), min(most, max(0.0, *means))) if means else (0.0, 0.0)
    room = 0.12 * (high - low) + 0.1
    return low - room, high + room
