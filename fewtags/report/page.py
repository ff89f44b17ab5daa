"""The two HTML reports. Each is one file that needs nothing else: styles, charts and images are inside."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.report import charts, words
from fewtags.report.examples import cooccurrence, example_cards
from fewtags.report.palette import DARK, LIGHT, MODULES, css_variables, run_colour
from fewtags.report.runs import Run, read_run, read_runs

FIGURES = {
    "mAP": "mean average precision over the categories",
    "mAP_voc": "the same, interpolated as Pascal VOC does and the paper's code reports",
    "OF1": "F1 over all labels together, at probability 0.5",
    "CF1": "harmonic mean of the categories' mean precision and mean recall, at probability 0.5",
    "OF1_top3": "OF1 when each image gets its three most probable categories",
    "CF1_top3": "CF1 when each image gets its three most probable categories",
}
TWO_COLUMNS_FROM = 24


def run_report(run: Path) -> Path:
    """Write RUN/report.html about one run."""
    return write_page("run.html", [read_run(Path(run))], Path(run) / "report.html", title=None)


def comparison_report(runs: Sequence[Path], out: Path, title: str = "Models side by side") -> Path:
    """Write one page that sets two or more runs side by side; the best stands first."""
    if len(runs) < 2:
        raise UserError("a comparison needs at least two runs; for one, use its own report.html")
    return write_page("comparison.html", words.ranked(read_runs(list(runs))), Path(out), title)


def write_page(template: str, runs: list[Run], out: Path, title: str | None) -> Path:
    page = environment().get_template(template).render(**_content(runs, title))
    write_text(out, page)
    return out


def environment() -> Environment:
    """Templates with what they need to write figures."""
    environment = Environment(
        loader=PackageLoader("fewtags.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for helper in (words.points, words.signed, words.percent, words.count, words.duration):
        environment.filters[helper.__name__] = helper
    return environment


def _content(runs: list[Run], title: str | None) -> dict[str, Any]:
    return {
        "title": title or f"{runs[0].name} on {_data_name(runs[0]) or runs[0].path.name}",
        "headline": words.headline(runs),
        "sentences": [sentence for sentence in map(words.filled_sentence, runs) if sentence],
        "facts": _facts(runs),
        "written": datetime.date.today().isoformat(),
        "light": css_variables(LIGHT),
        "dark": css_variables(DARK),
        "runs": [{"name": run.name, "colour": run_colour(i), "run": run} for i, run in enumerate(runs)],
        "figures": FIGURES,
        "best": {name: _best(runs, name) for name in FIGURES},
        "left_out": runs[0].metrics.get("categories_without_positives") or [],
        "thresholds": _thresholds(runs),
        "precisions": _precisions(runs),
        "filled": _filled(runs),
        "losses": _losses(runs),
        "categories": _categories(runs),
        "decisions": _decision_thresholds(runs[0]) if len(runs) == 1 else {},
        "examples": example_cards(runs),
        "cooccurrence": cooccurrence(runs),
        "modules": MODULES,
        "differing": _differing(runs),
    }


def _facts(runs: list[Run]) -> list[str]:
    """What all runs share, for the line above the title."""
    shared = [_data_name(runs[0])] if len({_data_name(run) for run in runs}) == 1 else []
    known = {run.known for run in runs if run.method != words.UPPER_BOUND}
    if len(known) == 1 and (share := known.pop()) is not None:
        shared.append("all given labels" if share >= 1 else f"{words.percent(share)} of the labels known")
    for name in ("backbone", "seed"):
        values = {run.recipe.get(name) for run in runs}
        if len(values) == 1 and (value := values.pop()) is not None:
            shared.append(f"{name} {value}")
    return [fact for fact in shared if fact]


def _data_name(run: Run) -> str:
    """The last part of a folder's path, or the name before a format's or generator's options."""
    spec = str(run.metrics.get("data") or run.labels.get("data") or "")
    name, _, _ = spec.partition(":")
    return Path(spec).name if "/" in name or "\\" in name else name


def _best(runs: list[Run], name: str) -> str | None:
    """The best figure among rivals: the upper bound saw more labels than they did."""
    rivals = [run for run in runs if run.method != words.UPPER_BOUND]
    values = [run.metrics[name] for run in rivals if run.metrics.get(name) is not None]
    return words.points(max(values)) if len(values) > 1 else None


def _thresholds(runs: list[Run]) -> list[dict[str, Any]]:
    charted = []
    for run in runs:
        lines = {module: run.series(f"threshold/{module}") for module in MODULES}
        if any(len(line) for line in lines.values()):
            charted.append({"name": run.name, "svg": charts.thresholds_chart(lines, warmup_epochs(run))})
    return charted


def _precisions(runs: list[Run]) -> list[dict[str, Any]]:
    charted = []
    for run in runs:
        lines = {module: _precision(run, module) for module in MODULES}
        if any(len(line) for line in lines.values()):
            charted.append({"name": run.name, "svg": charts.precision_chart(lines)})
    return charted


def _precision(run: Run, module: str) -> pd.Series:
    """right / made per epoch, over the epochs that made any."""
    made = run.series(f"pseudo/{module}_made")
    return (run.series(f"pseudo/{module}_right") / made[made > 0]).dropna()


def warmup_epochs(run: Run) -> int:
    """Epochs before the first pseudo label, from what was logged; 0 when nothing was."""
    made = pd.concat([run.series(f"pseudo/{module}_made") for module in MODULES]).groupby(level=0).sum()
    return int((made.cumsum() == 0).sum()) if len(made) and made.sum() > 0 else 0


def _filled(runs: list[Run]) -> list[dict[str, Any]]:
    """Per run: a chart per module on one scale, and the numbers behind it."""
    found = []
    for run in runs:
        made = {module: run.series(f"pseudo/{module}_made") for module in MODULES}
        made = {module: series for module, series in made.items() if len(series) and series.max() > 0}
        if made:
            top = max(series.max() for series in made.values())
            found.append(
                {"name": run.name, "charts": _filled_charts(run, made, top), "rows": _filled_rows(run, made)}
            )
    return found


def _filled_charts(run: Run, made: dict[str, pd.Series], top: float) -> list[dict[str, Any]]:
    drawn = []
    for module, series in made.items():
        right = run.series(f"pseudo/{module}_right")
        drawn.append(
            {"module": module, "svg": charts.filled_chart(module, series, right, top), "judged": len(right) > 0}
        )
    return drawn


def _filled_rows(run: Run, made: dict[str, pd.Series]) -> list[dict[str, Any]]:
    hidden, reachable = words.last(run, "pseudo/hidden_present"), words.last(run, "pseudo/reachable")
    rows = []
    for module, series in made.items():
        right, count = words.last(run, f"pseudo/{module}_right"), float(series.iloc[-1])
        rows.append(
            {
                "module": module,
                "made": count,
                "right": right,
                "precision": right / count if right is not None and count else None,
                "recall": right / hidden if right is not None and hidden else None,
                "ceiling": reachable / hidden if module == "intra" and reachable is not None and hidden else None,
            }
        )
    return rows


def _losses(runs: list[Run]) -> list[dict[str, Any]]:
    """Per run the loss terms, each with its line; terms that are always 0 are left out."""
    found = []
    for run in runs:
        series = {term.removeprefix("loss/"): run.series(term) for term in run.loss_terms()}
        terms = [
            {"term": term, "svg": charts.sparkline(values), "first": values.iloc[0], "last": values.iloc[-1]}
            for term, values in series.items()
            if len(values) > 1 and (values != 0).any()
        ]
        if terms:
            found.append({"name": run.name, "terms": terms})
    return found


def _categories(runs: list[Run]) -> list[list[dict[str, Any]]]:
    """Rows of the per-category table, in two columns when there are many.

    The largest gain of the first run over the second stands first; with one run, the highest precision.
    """
    tables = [run.metrics.get("per_category") or {} for run in runs]
    rows = [
        _category(name, [table.get(name) for table in tables])
        for name in dict.fromkeys(n for t in tables for n in t)
    ]
    scored = [row for row in rows if any(value is not None for value in row["values"])]
    scored.sort(key=lambda row: -(row["gain"] if row["gain"] is not None else row["values"][0] or 0))
    if len(scored) < TWO_COLUMNS_FROM:
        return [scored] if scored else []
    half = (len(scored) + 1) // 2
    return [scored[:half], scored[half:]]


def _category(name: str, values: list[float | None]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    both = len(values) > 1 and values[0] is not None and values[1] is not None
    gain = values[0] - values[1] if both else None  # type: ignore[operator]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    return {"name": name, "values": values, "gain": gain, "low": low, "high": high}


def _differing(runs: list[Run]) -> list[tuple[str, list[Any]]]:
    """The settings in which the runs are not the same, with each run's value."""
    names = dict.fromkeys(name for run in runs for name in run.recipe)
    rows = [(name, [run.recipe.get(name) for run in runs]) for name in names]
    return [(name, values) for name, values in rows if any(value != values[0] for value in values)]


def _decision_thresholds(run: Run) -> dict[str, float]:
    """Per category the probability from which `predict` says yes; {} when none were fitted."""
    given = run.labels.get("decision_thresholds") or {}
    if isinstance(given, list):
        return dict(zip(run.labels.get("categories", []), given, strict=False))
    return dict(given)
