"""DIR/completion.html: what was filled, what is promised, and how far the probabilities can be believed."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fewtags.files import write_text
from fewtags.report.charts import POINTS_PER_INCH, STYLE, inline_svg
from fewtags.report.page import environment
from fewtags.report.palette import DARK, LIGHT, STAND_INS, css_variables
from fewtags.report.words import count, percent


def completion_page(report: dict[str, Any], out: Path) -> None:
    """Reads what completion.json says, never a model."""
    content = {
        "title": "Labels filled in",
        "headline": headline(report),
        "sentences": report["caveats"],
        "facts": [f"{report['images']:,} images", report["method"]],
        "written": datetime.date.today().isoformat(),
        "light": css_variables(LIGHT),
        "dark": css_variables(DARK),
        "report": report,
        "charts": reliability_charts(report["calibration"]),
    }
    write_text(out, environment().get_template("completion.html").render(**content))


def headline(report: dict[str, Any]) -> str:
    filled, unknown = report["filled"], report["unknown"]
    if not filled["present"] + filled["absent"]:
        return f"None of the {count(unknown)} unknown labels could be filled in with enough confidence."
    text = (
        f"Of {count(unknown)} unknown labels {count(filled['present'])} were filled in as present and "
        f"{count(filled['absent'])} as absent: {percent(report['coverage'])}"
    )
    if report["precision"] is None:
        return text + ", without a promise about how many are right."
    return (
        text + f", with at least {percent(report['precision'])} of each right, "
        f"at {percent(report['confidence'])} confidence."
    )


def reliability_charts(calibration: dict[str, Any] | None) -> list[dict[str, Any]]:
    if calibration is None:
        return []
    titles = {"before": "The model's own score", "after": "Calibrated probability"}
    return [
        {"title": title, "ece": calibration[name]["ece"], "svg": reliability_chart(calibration[name], title)}
        for name, title in titles.items()
    ]


def reliability_chart(curve: dict[str, Any], title: str) -> Markup:
    """Share that was present against predicted probability; the area of a dot is its number of labels."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(360 / POINTS_PER_INCH, 330 / POINTS_PER_INCH))
        axes = figure.add_axes((0.14, 0.15, 0.83, 0.82))
        _frame(axes)
        most = max(curve["count"], default=1)
        sizes = [12 + 260 * number / most for number in curve["count"]]
        axes.plot(curve["predicted"], curve["present"], color=STAND_INS["run0"], linewidth=1.2)
        axes.scatter(curve["predicted"], curve["present"], s=sizes, color=STAND_INS["run0"], alpha=0.75)
        return inline_svg(figure, f"Reliability: {title}, expected calibration error {curve['ece']:.3f}")


def _frame(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], color=STAND_INS["line"], linewidth=1.5, linestyle=(0, (4, 3)))
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.spines["bottom"].set_color(STAND_INS["line"])
    axes.grid(color=STAND_INS["line"], linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=STAND_INS["muted"], pad=5)
    axes.set_xlabel("predicted probability", color=STAND_INS["muted"], loc="right")
    axes.set_ylabel("share present", color=STAND_INS["muted"], loc="top")
    axes.set_facecolor("none")
