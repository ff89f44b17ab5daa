"""Charts as inline SVG that follow the page's theme (stand-in colours, see palette) and its font."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fewtags.report.labels import spread
from fewtags.report.palette import MODULES, STAND_INS, themed

POINTS_PER_INCH = 72
TEXT = 12.5
HEAT = "cividis"
_numbers = itertools.count()
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fewtags",
    "font.size": TEXT,
    "hatch.linewidth": 1.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
}


def thresholds_chart(lines: dict[str, pd.Series], warmup: int = 0) -> Markup:
    """θ of the modules over the epochs, each line named where it ends."""
    with matplotlib.rc_context(STYLE):
        figure, axes = _figure(460, 240, right=0.80)
        draw_shares(axes, lines, warmup, STAND_INS)
        return inline_svg(figure, "Learned thresholds over the epochs: " + _in_words(lines))


def precision_chart(lines: dict[str, pd.Series]) -> Markup:
    """The share of filled labels that are right, per epoch and module."""
    with matplotlib.rc_context(STYLE):
        figure, axes = _figure(460, 240, right=0.80)
        draw_shares(axes, lines, 0, STAND_INS)
        return inline_svg(figure, "Share of the filled labels that are right, per epoch: " + _in_words(lines))


def draw_shares(axes: Axes, lines: dict[str, pd.Series], warmup: int, colours: dict[str, str]) -> None:
    """Lines between 0 and 1, one per module; the epochs of warm-up are shaded."""
    _plain_axes(axes, colours)
    axes.set_ylim(0, 1.05)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    drawn = {name: line for name, line in lines.items() if len(line)}
    if warmup and drawn:
        _mark_warmup(axes, min(line.index[0] for line in drawn.values()), warmup, colours)
    for name, line in drawn.items():
        dashes = "-" if name == "intra" else (0, (5, 2))
        axes.plot(line.index, line, color=colours[name], linewidth=2.2, linestyle=dashes)
        axes.plot(line.index[-1], line.iloc[-1], "o", color=colours[name], markersize=5)
    heights = spread([float(line.iloc[-1]) for line in drawn.values()], gap=0.14)
    for (name, line), height in zip(drawn.items(), heights, strict=True):
        _name_at_end(axes, f"{name} {line.iloc[-1]:.2f}", height, colours[name])


def filled_chart(module: str, made: pd.Series, right: pd.Series, top: float) -> Markup:
    """Pseudo labels per epoch: right ones solid, wrong ones hatched above them; `top` gives modules one scale."""
    with matplotlib.rc_context(STYLE):
        figure, axes = _figure(460, 240)
        draw_filled(axes, module, made, right, top, STAND_INS)
        return inline_svg(figure, f"Labels filled in from {MODULES[module]}, per epoch")


def draw_filled(
    axes: Axes, module: str, made: pd.Series, right: pd.Series, top: float, colours: dict[str, str]
) -> None:
    _plain_axes(axes, colours)
    axes.yaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylim(0, max(top, 1) * 1.06)
    judged = right.reindex(made.index) if len(right) else None
    solid = made if judged is None else judged.fillna(0)
    axes.bar(made.index, solid, width=0.78, color=colours[module])
    if judged is not None:
        wrong = (made - solid).clip(lower=0).replace(0, np.nan)  # a bar of no height would still draw its edge
        look = {"facecolor": colours["paper"], "edgecolor": colours["wrong"], "hatch": "////", "linewidth": 1.0}
        axes.bar(made.index, wrong, bottom=solid, width=0.74, **look)  # type: ignore[arg-type]


def sparkline(values: pd.Series) -> Markup:
    """A line without axes, for a table's cell."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(150 / POINTS_PER_INCH, 30 / POINTS_PER_INCH))
        axes = figure.add_axes((0.02, 0.1, 0.94, 0.8))
        axes.set_axis_off()
        axes.plot(values.index, values, color=STAND_INS["run0"], linewidth=1.6)
        axes.plot(values.index[-1], values.iloc[-1], "o", color=STAND_INS["run0"], markersize=3.5)
        return inline_svg(figure, f"from {values.iloc[0]:.3g} to {values.iloc[-1]:.3g}")


def matrix_chart(title: str, matrix: Sequence[Sequence[float]], categories: Sequence[str]) -> Markup:
    """A co-occurrence matrix (C, C), row i, column j: P(j | i). NaN and None stay empty."""
    values = np.array(matrix, dtype=float)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(340 / POINTS_PER_INCH, 350 / POINTS_PER_INCH))
        axes = figure.add_axes((0.27, 0.25, 0.72, 0.70))
        axes.pcolormesh(values, cmap=HEAT, vmin=0, vmax=1, edgecolors=STAND_INS["paper"], linewidth=0.7)
        axes.set_aspect("equal")
        axes.invert_yaxis()
        size = max(5.0, min(TEXT - 1.5, 230 / max(len(categories), 1)))
        middles = np.arange(len(categories)) + 0.5
        axes.set_xticks(middles, [_short(name) for name in categories], rotation=60, ha="right", fontsize=size)
        axes.set_yticks(middles, [_short(name) for name in categories], fontsize=size)
        axes.tick_params(length=0, labelcolor=STAND_INS["muted"], pad=3)
        for spine in axes.spines.values():
            spine.set_visible(False)
        return inline_svg(figure, f"Co-occurrence matrix, {title}")


def inline_svg(figure: Figure, label: str) -> Markup:
    """The figure as an SVG element of the page: labelled, themed, in the page's font, with ids of its own."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<svg [^>]*viewBox="([^"]+)"[^>]*>', _opening(label), svg, count=1)
    svg = re.sub(r" font-family: [^;\"]+;", "", svg)
    prefix = f"c{next(_numbers)}-"
    svg = re.sub(r'(\bid="|href="#|url\(#)', lambda found: found[0] + prefix, svg)
    return Markup(themed(svg))


def _opening(label: str) -> str:
    text = str(escape(label)).replace("\\", "")
    return rf'<svg viewBox="\1" role="img" aria-label="{text}" xmlns:xlink="http://www.w3.org/1999/xlink">'


def _figure(width: int, height: int, right: float = 0.97) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
    return figure, figure.add_axes((0.09, 0.17, right - 0.09, 0.78))


def _plain_axes(axes: Axes, colours: dict[str, str]) -> None:
    axes.spines["bottom"].set_color(colours["line"])
    axes.grid(axis="y", color=colours["line"], linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=colours["muted"], pad=5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.set_xlabel("epoch", color=colours["muted"], loc="right", labelpad=2)
    axes.set_facecolor("none")


def _mark_warmup(axes: Axes, first: float, epochs: int, colours: dict[str, str]) -> None:
    axes.axvspan(first - 0.4, first + epochs - 0.5, color=colours["line"], alpha=0.45, linewidth=0)
    axes.text(first - 0.2, 0.05, "warm-up", color=colours["muted"], fontsize=TEXT - 1, va="bottom")


def _name_at_end(axes: Axes, text: str, height: float, colour: str) -> None:
    axes.annotate(
        text, (1.01, height), xycoords=("axes fraction", "data"), color=colour, va="center", annotation_clip=False
    )


def _in_words(lines: dict[str, pd.Series]) -> str:
    return ", ".join(f"{name} from {s.iloc[0]:.2f} to {s.iloc[-1]:.2f}" for name, s in lines.items() if len(s))


def _thousands(value: float, _position: int) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _short(name: str, most: int = 13) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
