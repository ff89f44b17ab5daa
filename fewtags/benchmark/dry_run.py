"""`fewtags benchmark --dry-run`: the cells and what they cost, without running one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fewtags.benchmark.cells import Block
from fewtags.benchmark.cost import Costs, cache_cost, sizes
from fewtags.benchmark.plan import Plan
from fewtags.benchmark.pool import Pool
from fewtags.benchmark.sweep import check_jobs, cores
from fewtags.benchmark.terminal import cost_lines, plan_table
from fewtags.recipe import Recipe


def dry_run(
    data: Sequence[str],
    blocks: Sequence[Block],
    recipe: Recipe,
    out: str | Path,
    *,
    jobs: int = 1,
    redo: bool = False,
    tokens: str | None = None,
    console: Console | None = None,
) -> None:
    """Print the plan of `benchmark` with the same arguments. OUT is not touched."""
    check_jobs(jobs)
    console = console or Console()
    plan = Plan(data, blocks, recipe, Path(out))
    plan.check(redo)
    left = plan.cells if redo else plan.left()
    costs = Costs(plan.base, sizes(plan.cells, plan.base, tokens))
    costs.learn(plan.rows)
    with Pool(max(1, cores() // jobs)) as pool:
        costs.measure(left, pool)
        unfinished = [costs.sizes[name] for name in {cell.data for cell in left}]
        cache = cache_cost(plan.base, unfinished, pool, cores()) if left else None
    console.print(plan_table(plan.cells, left, costs))
    console.print(cost_lines(plan.cells, left, costs, cache, jobs), highlight=False, soft_wrap=True)
