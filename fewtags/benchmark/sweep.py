"""`fewtags benchmark`: run the cells that are left, each in a process of its own, and write the report."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from fewtags.benchmark.cells import Block, Cell
from fewtags.benchmark.cost import Costs, sizes
from fewtags.benchmark.plan import LOG, Plan
from fewtags.benchmark.pool import Ended, Pool, describe
from fewtags.benchmark.progress import Lines, LiveTable, State
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.locks import alone_in
from fewtags.recipe import Recipe

REDRAW = 0.5
CACHED = (
    *("limit", "backbone", "backbone_weights", "pretrained", "image_size", "crop_sides", "resize", "views"),
    *("freeze_backbone", "cache_frozen_stages", "trained_stages"),
)
"""Settings that decide what is in the feature cache."""


@dataclass(frozen=True)
class Failure:
    cell: Cell
    message: str
    log: Path


@dataclass(frozen=True)
class Outcome:
    cells: list[Cell]
    rows: pd.DataFrame
    report: Path | None
    """None: there is no row to report on."""
    failures: list[Failure] = field(default_factory=list)


def benchmark(
    data: Sequence[str],
    blocks: Sequence[Block],
    recipe: Recipe,
    out: str | Path,
    *,
    jobs: int = 1,
    redo: bool = False,
    keep_runs: bool = False,
    tokens: str | None = None,
    console: Console | None = None,
) -> Outcome:
    """Run every cell of `blocks` on every one of `data` that has no row in OUT/results.csv yet."""
    check_jobs(jobs)
    console = console or Console(quiet=True)
    plan = Plan(data, blocks, recipe, Path(out))
    plan.check(redo)
    costs = Costs(plan.base, sizes(plan.cells if redo else plan.left(), plan.base, tokens))
    with alone_in(plan.folder, "benchmark"):  # two sweeps would overwrite each other's rows
        plan.start(redo)
        for cell in plan.left():
            if plan.is_finished(cell):  # the sweep was stopped before it could write the row
                finish(plan, cell, keep_runs)
        left = plan.left()
        _say(console, f"{len(plan.cells)} cells, {len(plan.cells) - len(left)} of them done before.")
        failures = _Run(plan, costs, tokens, jobs, keep_runs, console).run(left) if left else []
        return Outcome(plan.cells, plan.rows, _report(plan), failures)


def finish(plan: Plan, cell: Cell, keep_runs: bool) -> dict[str, Any]:
    """A finished run's large files are not needed any more; its row comes last, so that none is kept by a kill."""
    if not keep_runs:
        plan.tidy(cell)
    return plan.record(cell)


def check_jobs(jobs: int) -> None:
    if jobs < 1:
        raise UserError(f"--jobs {jobs}: at least one run has to go on")


def _report(plan: Plan) -> Path | None:
    if plan.rows.empty:
        return None
    from fewtags.report.benchmark_page import benchmark_report

    return benchmark_report(plan.folder)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def cores() -> int:
    """Those that this process may use; OMP_NUM_THREADS may leave it fewer."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(there, int(allowed))) if allowed.isdecimal() else there


class _Run:
    """The running of cells."""

    def __init__(self, plan: Plan, costs: Costs, tokens: str | None, jobs: int, keep_runs: bool, console: Console):
        self.plan, self.costs, self.tokens, self.jobs = plan, costs, tokens, jobs
        self.keep_runs, self.console = keep_runs, console
        self.failures: list[Failure] = []
        self.threads = max(1, cores() // jobs)

    def run(self, left: Sequence[Cell]) -> list[Failure]:
        state = State(total=len(left))
        with Pool(self.threads) as pool:
            state.waiting.extend(self._prepared(left, pool, state))
            with self._display(state, pool) as shown:
                self._run_all(state, pool, shown)
        return self.failures

    def _prepared(self, left: Sequence[Cell], pool: Pool, state: State) -> list[Cell]:
        """Cache all features first, so that no cell's time has them in it; cells that cannot run have failed."""
        problems: dict[tuple[Any, ...], str | None] = {}
        ready = []
        for cell in left:
            recipe = self.plan.recipe(cell)
            wanted = (cell.data, *(getattr(recipe, name) for name in CACHED))
            if wanted not in problems:
                problems[wanted] = self._cache(cell, recipe, pool)
            problem = problems[wanted]
            if problem is None:
                ready.append(cell)
            else:
                write_text(self.plan.run_folder(cell) / LOG, f"Error: {problem}\n")
                self._failed(cell, problem, state, None)
        return ready

    def _cache(self, cell: Cell, recipe: Recipe, pool: Pool) -> str | None:
        """What went wrong, if anything did."""
        if not recipe.caches:
            return None
        settings = recipe.model_dump(mode="json")
        try:
            pool.call("prepare", data=cell.spec, tokens=self.tokens, recipe=settings, threads=cores())
        except UserError as mistake:
            return str(mistake)
        return None

    def _display(self, state: State, pool: Pool) -> Lines:
        if not self.console.is_terminal:
            return Lines(self.console, state)
        self.costs.learn(self.plan.rows)
        self.costs.measure(state.waiting, pool)
        return LiveTable(self.console, state, self.costs, self.jobs, self.plan.base.epochs)

    def _run_all(self, state: State, pool: Pool, shown: Lines) -> None:
        while state.waiting or state.running:
            while state.waiting and len(state.running) < self.jobs:
                self._start(state.waiting.popleft(), pool, state)
            shown.update()
            for ended in pool.wait(REDRAW):
                self._ended(ended, state, shown)

    def _start(self, cell: Cell, pool: Pool, state: State) -> None:
        resume = self.plan.make_ready(cell)
        folder = self.plan.run_folder(cell)
        settings = self._on_this_machine(self.plan.recipe(cell)).model_dump(mode="json")
        asked = {"data": cell.spec, "tokens": self.tokens, "recipe": settings, "folder": str(folder)}
        job = pool.start("cell", log=folder / LOG, **asked, resume=resume)
        state.running[job] = (cell, folder, time.perf_counter())

    def _on_this_machine(self, recipe: Recipe) -> Recipe:
        """Processes that load images share the cores too."""
        workers = min(8, self.threads) if recipe.workers is None else recipe.workers
        return recipe.replace(workers=workers)

    def _ended(self, ended: Ended, state: State, shown: Lines) -> None:
        cell, _, _ = state.running.pop(ended.job)
        if ended.exit != 0:
            if ended.exit > 0:
                self.plan.forget_checkpoints(cell)
            return self._failed(cell, describe(ended), state, shown)
        row = finish(self.plan, cell, self.keep_runs)
        state.done += 1
        self.costs.learn(self.plan.rows)
        shown.finished(cell, row)

    def _failed(self, cell: Cell, message: str, state: State, shown: Lines | None) -> None:
        state.failed += 1
        last_line = message.strip().splitlines()[-1].strip() if message.strip() else "no message"
        self.failures.append(Failure(cell, last_line, self.plan.run_folder(cell) / LOG))
        if shown is not None:
            shown.failed(cell, last_line)
