"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from fewtags.report.words import duration, percent, points

FIGURES = ("mAP", "mAP_voc", "OF1", "CF1", "OF1_top3", "CF1_top3")


def metrics_table(metrics: dict[str, Any] | Sequence[dict[str, Any]]) -> Table:
    """One model's figures in full, or several models' main figures, one row each and the best in bold."""
    if isinstance(metrics, dict):
        return _one(metrics)
    return _several(list(metrics))


def methods_table(summaries: dict[str, str]) -> Table:
    """What can be trained: each method's name and what it is."""
    table = Table("method", "what it is")
    for name, summary in summaries.items():
        table.add_row(name, summary)
    return table


def _one(metrics: dict[str, Any]) -> Table:
    title = f"mAP {points(metrics.get('mAP'))} · mAP, VOC-interpolated {points(metrics.get('mAP_voc'))}"
    table = Table(title=title, caption=_left_out(metrics), title_justify="left", caption_justify="left")
    table.add_column("")
    for heading in ("OP", "OR", "OF1", "CP", "CR", "CF1"):
        table.add_column(heading, justify="right")
    for heading, suffix in (("probability ≥ 0.5", ""), ("top 3", "_top3")):
        names = [f"{name}{suffix}" for name in ("OP", "OR", "OF1", "CP", "CR", "CF1")]
        table.add_row(heading, *(points(metrics.get(name)) for name in names))
    return table


def _several(rows: list[dict[str, Any]]) -> Table:
    table = Table()
    seeds = len({row.get("seed") for row in rows}) > 1
    for heading in ("method", "known", *(["seed"] if seeds else [])):
        table.add_column(heading)
    for heading in (*FIGURES, "time"):
        table.add_column(heading, justify="right")
    best = {name: max((row[name] for row in rows if row.get(name) is not None), default=None) for name in FIGURES}
    for row in rows:
        known = "" if row.get("known") is None else percent(row["known"])
        cells = [_cell(row.get(name), best[name], len(rows)) for name in FIGURES]
        seed = [str(row.get("seed", ""))] if seeds else []
        table.add_row(str(row.get("method", "")), known, *seed, *cells, duration(row.get("seconds")))
    return table


def _cell(value: float | None, best: float | None, rows: int) -> str:
    text = points(value)
    return f"[bold]{text}[/bold]" if rows > 1 and value is not None and text == points(best) else text


def _left_out(metrics: dict[str, Any]) -> str | None:
    left_out = metrics.get("categories_without_positives") or []
    if not left_out:
        return None
    names = ", ".join(left_out[:5]) + (", …" if len(left_out) > 5 else "")
    return f"{len(left_out)} categories have no present test label and are left out of mAP: {names}"
