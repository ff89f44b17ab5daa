"""Charts with a point per method: what filled labels are worth, and what quality costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from fewtags.report.benchmark_axes import (
    Look,
    mark_bound,
    new_figure,
    plain_axes,
)
from fewtags.report.charts import STYLE, TEXT, inline_svg
from fewtags.report.labels import name_points
from fewtags.report.palette import STAND_INS


@dataclass(frozen=True)
class Point:
    name: str
    x: float
    y: float
    look: Look


def quality_chart(points: Sequence[Point], ceiling: float | None, title: str) -> Markup:
    """Precision over recall of the labels filled in; the dashed line is the ceiling within images."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_figure(480, 330, left=0.1, right=0.97, bottom=0.14)
        plain_axes(axes)
        most, values = max(point.x for point in points), [point.y for point in points]
        axes.set_xlim(0, min(1.02, 1.3 * max(most, 0.01)))
        axes.set_ylim(max(0.0, min(values) - 0.12), min(1.04, max(values) + 0.12))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g} %"))
        if ceiling is not None:
            _mark_ceiling(axes, ceiling)
        _scatter(axes, points)
        axes.set_xlabel("recall", color=STAND_INS["muted"], loc="right", labelpad=2)
        return inline_svg(figure, title)


def _mark_ceiling(axes: Axes, ceiling: float) -> None:
    """A line where it is in view, else an arrow to where it would be."""
    low, colour, text = axes.get_ylim()[0], STAND_INS["intra"], f"ceiling within images {100 * ceiling:.0f} % "
    if ceiling <= axes.get_xlim()[1]:
        axes.axvline(ceiling, color=colour, linewidth=1.4, linestyle=(0, (5, 3)))
    shown = min(ceiling, axes.get_xlim()[1])
    arrow = "" if ceiling == shown else "→"
    axes.annotate(
        text + arrow,
        (shown, low),
        (-2, 9),
        textcoords="offset points",
        ha="right",
        color=colour,
        fontsize=TEXT - 1.5,
    )


def cost_chart(points: Sequence[Point], bound: float | None, title: str) -> Markup:
    """mAP over training seconds, which are on a logarithmic scale."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_figure(700, 380, left=0.06, right=0.95, bottom=0.12)
        plain_axes(axes)
        axes.set_xscale("log")
        xs, ys = [point.x for point in points], [point.y for point in points]
        axes.set_xlim(min(xs) / 1.4, max(xs) * 1.9)
        room = 0.1 * max(max(ys) - min(ys), 1.0)
        axes.set_ylim(min(ys) - room, max(ys) + 1.4 * room if bound is None else max(bound, *ys) + room)
        _time_ticks(axes)
        if bound is not None:
            mark_bound(axes, bound)
        _scatter(axes, points)
        axes.set_xlabel("training time, logarithmic", color=STAND_INS["muted"], loc="right", labelpad=2)
        return inline_svg(figure, title)


def _time_ticks(axes: Axes) -> None:
    ticks = [1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10_800, 36_000, 86_400, 259_200]
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(_time))


def _time(seconds: float, _position: int | None = None) -> str:
    if seconds < 60:
        return f"{seconds:g} s"
    return f"{seconds / 60:g} min" if seconds < 3600 else f"{seconds / 3600:g} h"


def _scatter(axes: Axes, points: Sequence[Point]) -> None:
    for point in points:
        axes.plot(point.x, point.y, point.look.mark, color=point.look.drawn, markersize=8, zorder=3)
    colours = [point.look.drawn for point in points]
    name_points(axes, [(p.x, p.y) for p in points], [p.name for p in points], colours, TEXT - 1)
