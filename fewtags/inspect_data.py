"""`fewtags inspect DATA`: counts, category frequencies, what is too scarce, and co-occurrence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fewtags.data import TOO_SCARCE, Data, summary
from fewtags.files import whole_file
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable

INCHES_A_CATEGORY = 0.17
NOT_KNOWN_GREY = "#d9d9d9"
SHADES = LinearSegmentedColormap.from_list("share", ["#ffffff", "#9ecae1", "#2171b5", "#08306b"])


def inspect(data: Data, out: Path | None = None, console: Console | None = None) -> Path:
    """Print what the data hold, write the co-occurrence picture and say where it is."""
    console = console or Console()
    console.print(summary(data))
    console.print(frequencies(data.table))
    picture = Path(out) if out is not None else Path(f"{data.name}-cooccurrence.png")
    draw_cooccurrence(data.table.split(TRAIN), picture, data.name)
    console.print(Text(f"Co-occurrence of the known training labels: {picture}"), soft_wrap=True)
    return picture


def frequencies(table: LabelTable) -> Table:
    """Categories from the most to the least frequent among the known training labels."""
    train, test = table.split(TRAIN).values, table.split(TEST).values
    present, absent, unknown = ((train == value).sum(axis=0) for value in (PRESENT, ABSENT, UNKNOWN))
    test_present = (test == PRESENT).sum(axis=0)
    shown = Table(title="Known training labels per category", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("category", "present", "absent", "unknown", "share", "in test", ""):
        shown.add_column(column, justify="left" if column in ("category", "") else "right")
    for c in np.argsort(-present, kind="stable"):
        known = present[c] + absent[c]
        share = f"{100 * present[c] / known:.1f} %" if known else "-"
        note = f"fewer than {TOO_SCARCE}" if present[c] < TOO_SCARCE else ""
        numbers = (f"{n:,}" for n in (present[c], absent[c], unknown[c]))
        shown.add_row(Text(table.categories[c]), *numbers, share, f"{test_present[c]:,}", note)
    return shown


def cooccurrence(values: np.ndarray) -> np.ndarray:
    """(n, C) → (C, C) float: P(j | i) = n(i = 1, j = 1) / n(i = 1, j known), NaN where that was never seen.

    The diagonal is NaN: a category beside itself says nothing.
    """
    present = (values == PRESENT).astype(np.float64)
    both_present = present.T @ present
    pairs_known = present.T @ (values != UNKNOWN).astype(np.float64)
    shares = np.full(both_present.shape, np.nan)
    np.divide(both_present, pairs_known, out=shares, where=pairs_known > 0)
    np.fill_diagonal(shares, np.nan)
    return shares


def draw_cooccurrence(table: LabelTable, path: Path, name: str) -> None:
    """A heat map of P(column | row): the share of the images with i, j known, that also have j."""
    count = len(table.categories)
    side = max(4.0, INCHES_A_CATEGORY * count)
    figure = Figure(figsize=(side + 2.6, side + 1.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_facecolor(NOT_KNOWN_GREY)
    picture = axes.imshow(cooccurrence(table.values), cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
    font = 8 if count > 25 else 10
    axes.set_xticks(range(count), table.categories, rotation=90, fontsize=font)
    axes.set_yticks(range(count), table.categories, fontsize=font)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("... also show this (grey: never known together)")
    axes.set_ylabel("Of the images that show this, what share ...")
    axes.set_title(f"{name}: known co-occurrence, {len(table):,} training images", loc="left", fontsize=11)
    figure.colorbar(picture, ax=axes, shrink=0.5, pad=0.02, aspect=30).outline.set_visible(False)
    with whole_file(path) as draft:
        figure.savefig(draft, format="png", dpi=110, bbox_inches="tight", pad_inches=0.15)
