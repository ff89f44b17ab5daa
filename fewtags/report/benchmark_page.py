"""OUT/report.html of a benchmark: one file that needs nothing else."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fewtags.benchmark.grid import Setting, main_settings
from fewtags.benchmark.results import FILE, read_results
from fewtags.benchmark.table import Table, said_once
from fewtags.benchmark.tables import TABLES
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.report import benchmark_figures as figures
from fewtags.report import benchmark_words as words
from fewtags.report.page import environment
from fewtags.report.palette import DARK, LIGHT, css_variables


def benchmark_report(folder: str | Path) -> Path:
    """Write FOLDER/report.html about FOLDER/results.csv, whatever of the sweep is done."""
    folder = Path(folder)
    if not (folder / FILE).is_file():
        raise UserError(f"{folder}: no {FILE} in it; run `fewtags benchmark` with --out {folder} first")
    page = environment().get_template("benchmark.html").render(**content(read_results(folder)))
    write_text(folder / "report.html", page)
    return folder / "report.html"


def content(results: pd.DataFrame) -> dict[str, Any]:
    settings = main_settings(results)
    return {
        "title": "Benchmark: " + ", ".join(setting.data for setting in settings) if settings else "Benchmark",
        "headline": words.headline(results),
        "sentences": words.sentences(results),
        "facts": [setting.title for setting in settings],
        "written": datetime.date.today().isoformat(),
        "light": css_variables(LIGHT),
        "dark": css_variables(DARK),
        "tables": {name: _tables(name, results) for name in TABLES},
        "parts": [_part(setting) for setting in settings],
        "tests": figures.test_charts(results),
        "made": [made(setting) for setting in settings],
        "missing": [(setting.title, lines) for setting in settings if (lines := words.missing_lines(setting))],
    }


def _tables(name: str, results: pd.DataFrame) -> list[Table]:
    """Its tables; with one data set, titles need not name it each time."""
    found = said_once([table for table in TABLES[name](results) if table.rows])
    settings = main_settings(results)
    only = settings[0].title if len(settings) == 1 else None
    return [replace(table, title=table.title.removesuffix(f", {only}")) for table in found]


def _part(setting: Setting) -> dict[str, Any]:
    """The charts of one data set; None or [] where there is nothing to draw."""
    return {
        "title": setting.title,
        "scores": figures.score_charts(setting),
        "order": figures.order(setting),
        "thresholds": figures.thresholds(setting),
        "departures": figures.departures(setting),
        "quality": figures.quality(setting),
        "cost": figures.cost(setting),
    }


def made(setting: Setting) -> dict[str, Any]:
    """How the rows came about: facts, and commands that make them again."""
    facts = {
        "data": setting.data,
        "training images": setting.images,
        "test images": setting.test_images,
        "epochs": setting.epochs,
        "backbone": setting.backbone,
        "seeds": ", ".join(map(str, setting.seeds)),
        "rows": len(setting.rows),
        "fewtags": ", ".join(sorted(setting.rows["version"].dropna().unique())) or None,
        "all runs together": _hours(setting.rows["seconds"].sum()),
    }
    return {
        "title": setting.title,
        "facts": {k: _shown(v) for k, v in facts.items()},
        "commands": commands(setting),
    }


def commands(setting: Setting) -> list[str]:
    """One per set of known shares; each would make the cells it names, whether all of them are done or not."""
    at: dict[str, list[str]] = {}
    for method, rows in setting.rows.groupby("method", sort=False):
        known = ",".join(f"{share:g}" for share in sorted(rows["known"].unique()))
        at.setdefault(known, []).append(str(method))
    full = at.pop("1", [])
    seeds = ",".join(map(str, setting.seeds))
    lines = [
        (",".join([*methods, *(full if place == 0 else [])]), known)
        for place, (known, methods) in enumerate(at.items())
    ]
    lines = lines or [(",".join(full), "1")]
    return [
        f"fewtags benchmark DATA --methods {m} --known {known} --seeds {seeds} --out DIR" for m, known in lines
    ]


def _shown(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
