"""The comparison on photographs as a picture: `python -m benchmarks.photographs docs/results.png`.

On the left every method's mAP over the share of labels known. On the right how far each rival is behind `hst` on
the same seeds: as it is, and given the discriminant that only `hst` has.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.claim import OURS
from fewtags.benchmark.grid import ORDER, known_shares, main_settings, score, upper_bound
from fewtags.benchmark.results import read_results
from fewtags.files import whole_file
from fewtags.report.palette import LIGHT

RESULTS, WITH_DISCRIMINANT = "docs/benchmark", "benchmarks/with_discriminant.csv"
NAMED = {OURS: "run0", "sarb": "run3", "plain": "run2", "assume_absent": "wrong"}
"""Lines with a colour and a name, the best rival and the two that everybody knows among them."""
SHARES = (0.1, 0.3, 0.5)
WIDTH, HEIGHT, RESOLUTION = 15.0, 5.6, 110


def picture(results: pd.DataFrame, with_discriminant: pd.DataFrame) -> Figure:
    """Rows of a sweep, and of `benchmarks.with_discriminant` → one wide figure."""
    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained", facecolor=LIGHT["paper"])
    left, *right = figure.subplots(1, 1 + len(SHARES), width_ratios=[2.0, *[1.0] * len(SHARES)])
    draw_curves(left, results)
    rivals = [name for name in reversed(ORDER) if name in set(with_discriminant["method"])]
    for axes, share in zip(right, SHARES, strict=True):  # on one scale, so that they can be compared
        draw_lead(axes, behind(with_discriminant, share, rivals), f"{100 * share:.0f} % known")
        axes.sharex(right[0])
        axes.tick_params(labelleft=axes is right[0])
    right[0].set_xlim(left=-0.4)
    right[1].set_xlabel(f"mAP behind {OURS}, same seeds", color=LIGHT["muted"])
    figure.legend(*right[0].get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False)
    return figure


def draw_curves(axes: Axes, results: pd.DataFrame) -> None:
    """Mean over seeds by known share; the named lines have a band of one standard deviation."""
    setting = main_settings(results)[0]
    methods = setting.methods()
    for method in sorted(methods, key=lambda name: name in NAMED):
        shares = known_shares(setting.rows, [method])
        scores = [found for share in shares if (found := score(setting.rows, method, share))]
        _draw_curve(axes, method, shares, [(found.mean, found.std or 0.0) for found in scores])
    if bound := upper_bound(setting.rows):
        axes.axhline(bound.mean, color=LIGHT["muted"], linestyle=(0, (5, 3)), linewidth=1.2)
        axes.annotate("ssgrl with all labels", (0.1, bound.mean), (0, 4), **_TEXT, color=LIGHT["muted"])
    shares = known_shares(setting.rows, methods)
    axes.set_xticks(shares, [f"{100 * share:.0f} %" for share in shares])
    axes.set_xlim(shares[0] - 0.03, shares[-1] + 0.2)
    axes.set(xlabel="labels known", title="mAP on COCO photographs (grey: the other methods)")
    _plain(axes)


_TEXT = {"textcoords": "offset points", "va": "bottom"}


def _draw_curve(axes: Axes, method: str, shares: Sequence[float], scores: Sequence[tuple[float, float]]) -> None:
    means = pd.Series([mean for mean, _ in scores], shares)
    spread = pd.Series([std for _, std in scores], shares)
    if method not in NAMED:
        axes.plot(means, color=LIGHT["run1"], linewidth=1, alpha=0.5)
        return
    colour = LIGHT[NAMED[method]]
    axes.plot(means, color=colour, linewidth=2.2, marker="o", markersize=5)
    axes.fill_between(shares, means - spread, means + spread, color=colour, alpha=0.14, linewidth=0)
    at_start = method == "assume_absent"  # where it differs; at the end the rivals meet
    place, shift = (shares[0], (8, -12)) if at_start else (shares[-1], (8, -5))
    height = means.iloc[0 if at_start else -1]
    axes.annotate(method, (place, height), shift, **_TEXT, color=colour, weight="bold")


def behind(rows: pd.DataFrame, share: float, rivals: Sequence[str]) -> pd.DataFrame:
    """Rival → mAP by which it is behind on its own seeds, `alone` and `mixed` with the discriminant."""
    own = rows[rows["known"] == share].groupby("method")[["mAP", "with_discriminant", OURS]].mean()
    gaps = pd.DataFrame({"alone": own[OURS] - own["mAP"], "mixed": own[OURS] - own["with_discriminant"]})
    return gaps.reindex(rivals)


def draw_lead(axes: Axes, gaps: pd.DataFrame, title: str) -> None:
    rows = range(len(gaps))
    axes.hlines(rows, gaps["mixed"], gaps["alone"], color=LIGHT["line"], linewidth=3, zorder=1)
    axes.scatter(gaps["alone"], rows, color=LIGHT["run1"], s=42, label="as it is")
    axes.scatter(gaps["mixed"], rows, color=LIGHT["run0"], s=42, label=f"given {OURS}'s discriminant, too")
    axes.axvline(0, color=LIGHT["ink"], linewidth=1.2)
    axes.set_yticks(rows, list(gaps.index))
    axes.set_title(title)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(color=LIGHT["line"], linewidth=0.8)
    axes.set_axisbelow(True)


def main(out: Path) -> None:
    figure = picture(read_results(RESULTS), pd.read_csv(WITH_DISCRIMINANT))
    with whole_file(out) as draft:
        figure.savefig(draft, dpi=RESOLUTION, format="png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
