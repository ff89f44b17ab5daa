"""simulation.html: mAP and label accuracy against the answers given, per order. Reads rows, never a model."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fewtags.files import write_text
from fewtags.report.benchmark_axes import Look, mark_bound, name_ends, new_figure, plain_axes
from fewtags.report.charts import STYLE, inline_svg
from fewtags.report.page import environment
from fewtags.report.palette import DARK, LIGHT, STAND_INS, css_variables
from fewtags.report.words import percent
from fewtags.review.orders import ORDERS
from fewtags.simulation.results import (
    COLUMNS,
    FILE,
    Reached,
    accuracy_sentence,
    cost_sentence,
    headline,
    means,
    orders_in,
    reached,
)

LOOKS = dict(
    zip(ORDERS, (Look("run0", "o"), Look("run2", "s"), Look("intra", "^"), Look("run1", "D")), strict=True)
)
CHARTS = {
    "mAP": ("Score of the model", "mAP on the test images, which are only scored"),
    "label_accuracy": ("Labels right", "Share of the training labels that are right when holes are filled"),
    "presents_found": ("Present labels found", "Of the answers given, how many were yes"),
}


def simulation_page(folder: Path, rows: pd.DataFrame, settings: dict[str, Any]) -> Path:
    ends = [reached(rows, order) for order in orders_in(rows)]
    content = {
        "title": f"What answers are worth: {settings['data']}",
        "headline": headline(ends),
        "sentences": [accuracy_sentence(ends), cost_sentence(ends)],
        "facts": facts(settings, ends),
        "written": datetime.date.today().isoformat(),
        "light": css_variables(LIGHT),
        "dark": css_variables(DARK),
        "settings": settings,
        "file": FILE,
        "ends": ends,
        "charts": charts(rows),
        "columns": [name for name in COLUMNS if name in rows],
        "rows": rows.astype(object).where(rows.notna(), None).to_dict("records"),
    }
    write_text(folder / "simulation.html", environment().get_template("simulation.html").render(**content))
    return folder / "simulation.html"


def facts(settings: dict[str, Any], ends: Sequence[Reached]) -> list[str]:
    images = f"{settings['images']:,} training images, {settings['categories']} categories"
    seeds = "1 seed" if ends[0].seeds == 1 else f"{ends[0].seeds} seeds"
    return [images, settings["recipe"]["method"], f"{percent(settings['start'])} known at the start", seeds]


def charts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """One per figure that has been measured."""
    drawn = [name for name in CHARTS if rows[name].notna().any()]
    titles = {name: CHARTS[name] for name in drawn}
    return [
        {"title": title, "caption": caption, "svg": answers_chart(rows, name, title)}
        for name, (title, caption) in titles.items()
    ]


def answers_chart(rows: pd.DataFrame, figure_name: str, title: str) -> Markup:
    """A figure against the answers given, a line per order, a band of one standard deviation over seeds."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_figure(480, 340, left=0.10, right=0.74, bottom=0.14)
        _answers_axis(axes)
        ends = [_draw(axes, rows, order, figure_name) for order in orders_in(rows)]
        bound = rows.loc[rows["order"] == "full_labels", "mAP"].mean() if figure_name == "mAP" else float("nan")
        if pd.notna(bound):
            mark_bound(axes, float(bound))
        axes.margins(y=0.08)
        name_ends(axes, ends)
        words = ", ".join(name for name, _, _ in ends)
        return inline_svg(figure, f"{title} against the answers given. In the end: {words}")


def _draw(axes: Axes, rows: pd.DataFrame, order: str, name: str) -> tuple[str, float, str]:
    """Draw an order's line; returns what to write at its end: text, height, colour."""
    over, look = means(rows, order), LOOKS[order]
    own = rows[rows["order"] == order]
    spread = own.groupby("round")[name].std().reindex(over.index).fillna(0)
    axes.plot(over["answers"], over[name], color=look.drawn, linewidth=2, marker=look.mark, markersize=5.5)
    low, high = over[name] - spread, over[name] + spread
    axes.fill_between(over["answers"], low, high, color=look.drawn, alpha=0.14, linewidth=0)
    end = float(over[name].iloc[-1])
    return f"{order} {end:,.0f}" if name == "presents_found" else f"{order} {end:.1f}", end, look.drawn


def _answers_axis(axes: Axes) -> None:
    plain_axes(axes)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel("answers given", color=STAND_INS["muted"], loc="right", labelpad=2)
