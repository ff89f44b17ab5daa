"""One wide picture of a comparison, for a README: scores, thresholds, filled labels, example images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from fewtags.files import whole_file
from fewtags.report import words
from fewtags.report.charts import STYLE, draw_filled, draw_shares
from fewtags.report.examples import merged_fills
from fewtags.report.overlays import open_example
from fewtags.report.page import warmup_epochs
from fewtags.report.palette import LIGHT, MODULES, run_colour
from fewtags.report.runs import Run, read_runs

WIDTH, CHARTS_HEIGHT, EXAMPLES_HEIGHT = 16.0, 4.6, 4.0
RESOLUTION = 110
MOST_IMAGES = 6
CHIPS = {
    "known": {"facecolor": LIGHT["ink"], "edgecolor": LIGHT["ink"]},
    "right": {"facecolor": "#dcefe8", "edgecolor": "#7fbfae"},
    "wrong": {"facecolor": "#fbe6d9", "edgecolor": "#e5a078"},
    "open": {"facecolor": "#ebe6f8", "edgecolor": "#b8a8e2"},
}
FILLED = {"intra": "Filled within images", "cross": "Filled across images", "own": "Filled by own score"}
CHIP_TEXT = {"known": "#ffffff", "right": "#00543d", "wrong": "#8f3f00", "open": "#3f2f78"}


def comparison_picture(runs: Sequence[Path], out: Path) -> Path:
    """Write a PNG of what `comparison_report` shows first."""
    found = words.ranked(read_runs(list(runs)))
    with matplotlib.rc_context({**STYLE, "font.family": _fonts(), "font.size": 12}):
        figure = _draw(found)
        with whole_file(out) as draft:
            figure.savefig(draft, dpi=RESOLUTION, facecolor=LIGHT["paper"])
    return Path(out)


def _draw(runs: list[Run]) -> Figure:
    images = _chosen(runs)
    figure = Figure(figsize=(WIDTH, CHARTS_HEIGHT + (EXAMPLES_HEIGHT if images else 0)))
    FigureCanvasAgg(figure)
    if not images:
        _charts(figure, runs)
        return figure
    upper_lower: Any = figure.subfigures(2, 1, height_ratios=[CHARTS_HEIGHT, EXAMPLES_HEIGHT])
    _charts(upper_lower[0], runs)
    _images(upper_lower[1], images)
    return figure


def _charts(figure: Figure | SubFigure, runs: list[Run]) -> None:
    figure.text(0.03, 0.9, words.headline(runs), fontsize=20, fontweight="bold", color=LIGHT["ink"])
    filler = next((run for run in runs if run.series("threshold/intra").size), None)
    scores = figure.add_axes((0.08, 0.14, 0.235, 0.56))
    _scores(scores, runs)
    if filler is None:
        return
    thresholds = figure.add_axes((0.35, 0.14, 0.13, 0.56))
    lines = {module: filler.series(f"threshold/{module}") for module in MODULES}
    draw_shares(thresholds, lines, warmup_epochs(filler), LIGHT)
    _title(thresholds, "Learned thresholds")
    _filled(figure, filler)


def _scores(axes: Axes, runs: list[Run]) -> None:
    """A bar per run, the best on top."""
    values = [run.map or 0 for run in runs]
    places = range(len(runs), 0, -1)
    axes.barh(places, values, height=0.62, color=[LIGHT[run_colour(i)] for i in range(len(runs))])
    for place, value in zip(places, values, strict=True):
        axes.text(value + 1.5, place, words.points(value), va="center", fontweight="bold", color=LIGHT["ink"])
    axes.set_yticks(list(places), [run.name for run in runs])
    axes.set_xlim(0, 100)
    axes.set_ylim(0.3, max(len(runs), 3) + 0.7 if len(runs) > 2 else 2.8)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(length=0, labelcolor=LIGHT["ink"], labelsize=13)
    _title(axes, "mAP on the test images", left=-0.21)


def _filled(figure: Figure | SubFigure, run: Run) -> None:
    """A panel per module that filled anything, on one scale."""
    made = {module: run.series(f"pseudo/{module}_made") for module in MODULES}
    made = {module: series for module, series in made.items() if len(series) and series.max() > 0}
    top = max((series.max() for series in made.values()), default=0)
    for left, (module, series) in zip((0.57, 0.72, 0.87), made.items(), strict=False):
        axes = figure.add_axes((left, 0.14, 0.115, 0.56))
        draw_filled(axes, module, series, run.series(f"pseudo/{module}_right"), top, LIGHT)
        _title(axes, FILLED[module], _share_right(run, module))


def _share_right(run: Run, module: str) -> str:
    made, right = words.last(run, f"pseudo/{module}_made"), words.last(run, f"pseudo/{module}_right")
    return f"{words.percent(right / made)} right; hatched: not" if made and right is not None else ""


def _title(axes: Axes, text: str, note: str = "", left: float = 0) -> None:
    axes.annotate(text, (left, 1.15), xycoords="axes fraction", fontweight="bold", fontsize=13, color=LIGHT["ink"])
    axes.annotate(note, (0, 1.055), xycoords="axes fraction", fontsize=11, color=LIGHT["muted"])


def _chosen(runs: list[Run]) -> list[tuple[Run, dict[str, Any]]]:
    """The images with most filled labels, of the best run that has any images."""
    for run in runs:
        images = run.examples.get("images", [])
        if any(image.get("filled") for image in images):
            best = sorted(images, key=lambda image: -len(merged_fills(image["filled"])))[:MOST_IMAGES]
            return [(run, image) for image in best]
    return []


def _images(figure: Figure | SubFigure, images: list[tuple[Run, dict[str, Any]]]) -> None:
    legend = [("known", "known"), ("right", "✓ filled in, right"), ("wrong", "✗ filled in, wrong")]
    _chips(figure, legend, 0.03, 0.95, 0.97)
    width = 0.94 / MOST_IMAGES
    for index, (run, image) in enumerate(images):
        left = 0.03 + index * width
        axes = figure.add_axes((left, 0.3, width - 0.015, 0.55), anchor="NW")
        axes.imshow(open_example(run.path / "examples", image["file"]))
        axes.set_axis_off()
        _chips(figure, _labels(image), left, 0.25, left + width - 0.01)


def _labels(image: dict[str, Any]) -> list[tuple[str, str]]:
    known = [("known", name) for name in image.get("known_present", [])]
    kinds = {True: ("right", "✓ "), False: ("wrong", "✗ "), None: ("open", "? ")}
    filled = [(kinds[fill["right"]], fill["category"]) for fill in merged_fills(image.get("filled", []))]
    return known + [(kind, sign + name) for (kind, sign), name in filled]


def _chips(
    figure: Figure | SubFigure, chips: Sequence[tuple[str, str]], left: float, top: float, right: float
) -> None:
    """Rounded labels set one after the other from (left, top), wrapped at `right`, within the figure."""
    x, y, canvas = left, top, figure.figure.canvas
    for kind, text in chips:
        box = {"boxstyle": "round,pad=0.35,rounding_size=0.9", "linewidth": 1.0, **CHIPS[kind]}
        drawn = figure.text(x + 0.006, y, text, color=CHIP_TEXT[kind], fontsize=11, va="top", bbox=box)
        extent = drawn.get_window_extent(canvas.get_renderer())  # type: ignore[attr-defined]
        width, height = (extent.width / figure.bbox.width, extent.height / figure.bbox.height)
        if x > left and x + width + 0.012 > right:
            x, y = left, y - 2.1 * height
            if y < 0.02:
                drawn.remove()
                return
            drawn.set_position((x + 0.006, y))
        x += width + 0.016


def _fonts() -> list[str]:
    """The page's font if it is installed; matplotlib's own always is, and has the signs the first may lack."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in ("Inter", "Helvetica Neue", "DejaVu Sans") if name in installed]
