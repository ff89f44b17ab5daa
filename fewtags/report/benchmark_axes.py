"""What the charts of a benchmark share: a look per method, axes, and names beside what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fewtags.report.charts import POINTS_PER_INCH, TEXT
from fewtags.report.labels import spread
from fewtags.report.palette import STAND_INS

COLOURS = ("run0", "run2", "intra", "run3", "cross", "wrong", "run4", "run5")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "p")
FIRST = ("hst", "plain", "ssgrl", "plain_pl", "sst")
"""Methods that get a colour before others do."""
OTHERS = "run1"


@dataclass(frozen=True)
class Look:
    colour: str
    """A name of the palette."""
    mark: str
    named: bool = True

    @property
    def drawn(self) -> str:
        return STAND_INS[self.colour]


def looks(methods: Sequence[str]) -> dict[str, Look]:
    """method → its look, for methods given best first: the well-known ones and the best get a colour."""
    chosen = [name for name in FIRST if name in methods]
    chosen += [name for name in methods if name not in chosen]
    coloured = {name: Look(COLOURS[i], MARKS[i]) for i, name in enumerate(chosen[: len(COLOURS)])}
    return {name: coloured.get(name, Look(OTHERS, "o", named=False)) for name in methods}


def new_figure(
    width: int, height: int, left: float = 0.09, right: float = 0.97, bottom: float = 0.12, top: float = 0.97
) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
    return figure, figure.add_axes((left, bottom, right - left, top - bottom))


def rows_figure(rows: int, right: float = 0.97) -> tuple[Figure, Axes]:
    height = 24 * rows + 46
    return new_figure(500, height, left=0.37, right=right, bottom=40 / height, top=1 - 4 / height)


def plain_axes(axes: Axes) -> None:
    axes.spines["bottom"].set_color(STAND_INS["line"])
    axes.grid(axis="y", color=STAND_INS["line"], linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=STAND_INS["muted"], pad=5)
    axes.set_facecolor("none")


def share_axis(axes: Axes, shares: Sequence[float]) -> None:
    plain_axes(axes)
    axes.set_xticks(list(shares), [f"{100 * share:.4g} %" for share in shares])
    axes.set_xlabel("labels known", color=STAND_INS["muted"], loc="right", labelpad=2)
    axes.yaxis.set_major_locator(MaxNLocator(7))


def rows_axis(axes: Axes, names: Sequence[str]) -> None:
    plain_axes(axes)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=STAND_INS["line"], linewidth=0.8)
    axes.set_yticks(range(len(names)), list(names))
    axes.tick_params(axis="y", labelcolor=STAND_INS["ink"])
    axes.set_ylim(len(names) - 0.4, -0.6)


def name_at_right(axes: Axes, height: float, text: str, colour: str) -> None:
    axes.text(1.02, height, text, transform=axes.get_yaxis_transform(), color=colour, va="center")


def mark_bound(axes: Axes, bound: float) -> None:
    axes.axhline(bound, color=STAND_INS["muted"], linewidth=1.4, linestyle=(0, (5, 3)))
    name_at_left(axes, bound, f"full_labels {bound:.1f}")


def name_at_left(axes: Axes, height: float, text: str) -> None:
    axes.annotate(
        text, (0.0, height), (4, -10), xycoords=("axes fraction", "data"), textcoords="offset points",
        color=STAND_INS["muted"], fontsize=TEXT - 1.5, va="center",
    )  # fmt: skip


def name_ends(axes: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    """(name, height, colour) of each line, written right of the axes and kept apart."""
    for (name, _, colour), height in zip(
        ends, spread([end for _, end, _ in ends], line_height(axes)), strict=True
    ):
        axes.text(1.02, height, name, transform=axes.get_yaxis_transform(), color=colour, va="center")


def line_height(axes: Axes) -> float:
    """What a line of text takes, in the units of the vertical axis."""
    low, high = axes.get_ylim()
    height = axes.get_position().height * axes.figure.get_figheight() * POINTS_PER_INCH  # type: ignore[union-attr]
    return 16.0 / height * (high - low)
