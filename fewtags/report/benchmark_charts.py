"""Charts of a benchmark made of lines: over known shares, over thresholds, and from our order to the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes

from fewtags.report.benchmark_axes import (
    COLOURS,
    MARKS,
    Look,
    line_height,
    mark_bound,
    name_at_left,
    name_ends,
    new_figure,
    plain_axes,
    share_axis,
)
from fewtags.report.charts import STYLE, TEXT, inline_svg
from fewtags.report.labels import spread
from fewtags.report.palette import STAND_INS


@dataclass(frozen=True)
class Line:
    """A method's figure over the known shares."""

    method: str
    values: pd.Series
    """Index: known share."""
    spread: pd.Series
    """Standard deviation over the seeds, NaN with one."""


def lines_chart(
    lines: Sequence[Line], look: Mapping[str, Look], title: str, bound: float | None = None, zero: str = ""
) -> Markup:
    """Lines over the known share with bands over seeds; `bound` is the upper bound, `zero` what 0 stands for."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_figure(480, 390, left=0.08, right=0.76, bottom=0.12)
        share_axis(axes, sorted({share for line in lines for share in line.values.index}))
        for line in sorted(lines, key=lambda line: look[line.method].named):
            _draw_line(axes, line, look[line.method])
        _frame(axes, lines, look, 0.0 if zero else bound)
        if bound is not None:
            mark_bound(axes, bound)
        if zero:
            axes.axhline(0, color=STAND_INS["ink"], linewidth=1.2)
            name_at_left(axes, 0, zero)
        _name_lines(axes, [line for line in lines if look[line.method].named], look)
        return inline_svg(figure, title)


def _draw_line(axes: Axes, line: Line, look: Look) -> None:
    x, y = line.values.index, line.values
    if not look.named:
        axes.plot(x, y, color=look.drawn, linewidth=1.1, alpha=0.55, zorder=1.5)
        return
    axes.plot(x, y, color=look.drawn, linewidth=2, marker=look.mark, markersize=5.5, zorder=3)
    axes.fill_between(x, y - line.spread, y + line.spread, color=look.drawn, alpha=0.14, linewidth=0, zorder=2)


def _frame(axes: Axes, lines: Sequence[Line], look: Mapping[str, Look], marked: float | None) -> None:
    """Room for the named lines and the marked height; a grey line far below leaves the chart, not flattens it."""
    named = pd.concat(
        [line.values for line in lines if look[line.method].named] or [line.values for line in lines]
    )
    heights = [float(named.min()), float(named.max()), *([] if marked is None else [marked])]
    low, high = min(heights), max(heights)
    room = 0.07 * max(high - low, 1.0)
    axes.set_ylim(low - room, high + room)


def _name_lines(axes: Axes, lines: Sequence[Line], look: Mapping[str, Look]) -> None:
    ends = [float(line.values.iloc[-1]) for line in lines]
    for line, end, height in zip(lines, ends, spread(ends, line_height(axes)), strict=True):
        colour = look[line.method].drawn
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "alpha": 0.6, "shrinkA": 1, "shrinkB": 6}
        axes.annotate(
            f"{line.method} {end:.1f}".replace("-", "−"), (line.values.index[-1], end), (1.03, height),
            xycoords="data", textcoords=("axes fraction", "data"),
            color=colour, va="center", annotation_clip=False, fontsize=TEXT - 0.5, arrowprops=leader,
        )  # fmt: skip


def order_chart(places: pd.DataFrame, look: Mapping[str, Look], title: str) -> Markup:
    """A method's place here, left, and in the paper, right: `ours_place` and `theirs_place` per method."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_figure(460, 34 * len(places) + 60, left=0.3, right=0.7, bottom=0.02, top=0.9)
        for method, ours, theirs in zip(places.index, places["ours_place"], places["theirs_place"], strict=True):
            colour = look[str(method)].drawn
            axes.plot([0, 1], [ours, theirs], color=colour, linewidth=2, marker="o", markersize=6)
        for x, column, alignment in ((-0.05, "ours_place", "right"), (1.05, "theirs_place", "left")):
            for height, (method, place) in zip(
                spread(list(places[column]), 0.8), places[column].items(), strict=True
            ):
                text = f"{method}  {place:.0f}" if alignment == "right" else f"{place:.0f}  {method}"
                axes.text(x, height, text, ha=alignment, va="center", color=look[str(method)].drawn)
        axes.set_axis_off()
        axes.set_ylim(len(places) + 0.6, 0.4)
        axes.set_xlim(-0.02, 1.02)
        for x, text in ((0, "here"), (1, "in the paper")):
            axes.text(x, 0.15, text, ha="center", color=STAND_INS["muted"], fontsize=TEXT - 1)
        return inline_svg(figure, title)


def thresholds_chart(ours: Mapping[str, pd.Series], theirs: Mapping[str, pd.Series], title: str) -> Markup:
    """mAP with a fixed threshold minus mAP with learned ones, over the threshold; the paper's lines are dashed."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_figure(480, 400, left=0.08, right=0.80, bottom=0.12)
        plain_axes(axes)
        axes.axhline(0, color=STAND_INS["ink"], linewidth=1.2)
        ends = []
        for place, (name, series) in enumerate([*ours.items(), *theirs.items()]):
            colour = STAND_INS[COLOURS[place % max(len(ours), 1)]]
            published = place >= len(ours)
            axes.plot(
                series.index, series, color=colour, linewidth=1.3 if published else 2.2, markersize=5.5,
                linestyle=(0, (4, 2)) if published else "-", marker="" if published else MARKS[place % len(MARKS)],
            )  # fmt: skip
            ends.append((name, float(series.iloc[-1]), colour))
        name_at_left(axes, 0, "learned")
        axes.set_xlabel("fixed threshold", color=STAND_INS["muted"], loc="right", labelpad=2)
        name_ends(axes, ends)
        return inline_svg(figure, title)
