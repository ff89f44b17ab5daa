"""What a sweep prints before and after: its cells and their cost, its results, and what failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fewtags.benchmark.cells import Cell
from fewtags.benchmark.cost import CacheCost, Costs
from fewtags.benchmark.sweep import Failure
from fewtags.durations import duration
from fewtags.report.words import percent, points

MOST_SHOWN = 5


def results_table(rows: pd.DataFrame, cells: Iterable[Cell]) -> Group:
    """Per data: methods × known, mean mAP over the seeds."""
    wanted = list(cells)
    names = list(dict.fromkeys(cell.data for cell in wanted))
    methods = list(dict.fromkeys(cell.method for cell in wanted))
    return Group(*(_results_of(name, rows[rows["data"] == name], methods) for name in names))


def _results_of(name: str, rows: pd.DataFrame, methods: Sequence[str]) -> Table:
    shown = rows[rows["method"].isin(methods)]
    shares = sorted(set(shown["known"]))
    table = Table(title=Text(f"{name}: mAP, mean over seeds"), title_justify="left")
    table.add_column("method")
    for share in shares:
        table.add_column(percent(share), justify="right")
    means = shown.groupby(["method", "known"])["mAP"].mean().to_dict()
    for method in methods:
        scores = [means.get((method, share)) for share in shares]
        table.add_row(method, *("" if score is None else points(score) for score in scores))
    return table


def plan_table(cells: Sequence[Cell], left: Sequence[Cell], costs: Costs) -> Table:
    """Per data and method: its shares and seeds, how many cells are done, and what one costs."""
    table = Table("data", "method", "known", "seeds", "done", "each")
    waiting = set(left)
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.data, cell.method), []).append(cell)
    for (data, method), group in groups.items():
        done = sum(cell not in waiting for cell in group)
        seconds = costs.seconds(group[0])
        known = ", ".join(f"{share:g}" for share in sorted({cell.known for cell in group}))
        seeds = ", ".join(str(seed) for seed in sorted({cell.seed for cell in group}))
        cost = "" if seconds is None else duration(seconds)
        table.add_row(Text(data), method, known, seeds, f"{done}/{len(group)}", cost)
    return table


def cost_lines(
    cells: Sequence[Cell], left: Sequence[Cell], costs: Costs, cache: CacheCost | None, jobs: int
) -> str:
    """How many cells, how long with this many jobs, and the disk that the features take."""
    seconds = costs.total(left) or 0.0
    text = f"{len(cells)} cells, {len(cells) - len(left)} of them done, {len(left)} left: about "
    text += f"{duration(seconds / jobs)} with --jobs {jobs}."
    if left and cache is not None:
        text += (
            f" Before that, where they are not cached yet: features of {cache.gigabytes:.1f} GB on disk, "
            f"about {duration(cache.seconds)}."
        )
    return text


def failure_lines(failures: Sequence[Failure]) -> str:
    """Each reason once, with the cells that it stopped."""
    reasons: dict[str, list[Failure]] = {}
    for failure in failures:
        reasons.setdefault(failure.message, []).append(failure)
    lines = [f"{len(failures)} failed; the same command tries them again:"]
    for message, group in reasons.items():
        lines += [f"  {message}", *(f"    {failure.cell}: {failure.log}" for failure in group[:MOST_SHOWN])]
        lines += [f"    and {len(group) - MOST_SHOWN} more"] if len(group) > MOST_SHOWN else []
    return "\n".join(lines)
