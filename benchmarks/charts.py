"""Cost over the number of categories, as a picture: `python -m benchmarks.charts docs/performance.png`."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.bench import RESULTS
from benchmarks.cases import CATEGORIES
from benchmarks.tables import NAMES, summary

BATCH, SIDE = 8, 7
MODULES = ("sd", "graph", "intra", "cross", "heads")
STYLES = {"ours": ("#1b6ca8", "-"), "textbook": ("#b04a2f", "--"), "textbook_product": ("#b04a2f", ":")}
COSTS = {"seconds": ("seconds a step", 1.0), "peak_bytes": ("GB above idle", 1e9)}


def chart(rows: pd.DataFrame) -> Figure:
    """Time above, memory below, a column per module; batch 8, map 7×7, both axes logarithmic."""
    found = summary(rows)
    found = found[(found["batch"] == BATCH) & (found["side"] == SIDE) & (found["known"] == 0.5)]
    figure = Figure(figsize=(3 * len(MODULES), 6), layout="constrained")
    axes = figure.subplots(len(COSTS), len(MODULES), sharex=True, squeeze=False)
    for column, module in enumerate(MODULES):
        for row, cost in enumerate(COSTS):
            draw(axes[row][column], found[found["module"] == module], cost)
        axes[0][column].set_title(NAMES[module])
    handles, labels = axes[0][-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(STYLES), frameon=False)
    return figure


def draw(axes: Axes, rows: pd.DataFrame, cost: str) -> None:
    name, unit = COSTS[cost]
    for contender, own in rows[rows["fits"]].groupby("contender"):
        colour, line = STYLES[str(contender)]
        label = str(contender).replace("_", ", ")
        axes.plot(own["categories"], own[cost] / unit, line, color=colour, marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="categories", ylabel=name)
    axes.set_xticks(CATEGORIES, labels=map(str, CATEGORIES))
    axes.minorticks_off()
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    chart(pd.read_csv(RESULTS)).savefig(Path(sys.argv[1]), dpi=120)
