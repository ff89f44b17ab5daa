"""Methods, and sweeps over them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fewtags.cli.shared import Json, Tokens, console, errors, show


def methods(
    variants: Annotated[bool, typer.Option("--variants", help="Variants of hst too, for ablations.")] = False,
    json_: Json = False,
) -> None:
    """List the methods that can be trained."""
    from fewtags.methods import METHODS
    from fewtags.methods.variants import VARIANTS
    from fewtags.report.terminal import methods_table

    summaries = {name: method.summary for name, method in METHODS.items()}
    if variants:
        summaries |= {name: variant.summary for name, variant in VARIANTS.items()}
    show(summaries, json_, methods_table)


def benchmark(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", help="One or more data sets, each as for `train`."),
    ],
    out: Annotated[Path, typer.Option(help="The sweep's folder: results.csv, report.html, recipes, runs.")],
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods and variants, separated by commas; default every method. METHOD.FIELD.VALUE is a method "
            "with one setting changed, such as asl.shortcut_lr.0.0003."
        ),
    ] = None,
    known: Annotated[
        str | None, typer.Option(help="Shares of the labels to keep; default 0.1,0.5,0.9.", show_default=False)
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="Default 0,1,2.", show_default=False)] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="paper: every table of the paper, its ablations, and each of our choices undone: days on a GPU. "
            "quick: ten methods at three shares with three seeds on 2,000 images, under an hour on two cores. "
            "--methods, --known and --seeds narrow it down."
        ),
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="As for `train`; default `default`, or the suite's own.", show_default=False)
    ] = None,
    words: Annotated[str | None, typer.Option(help="Word vectors: .npz, GloVe text file, or hub:NAME.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting of the recipe.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs at a time; they share the cores.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cells and what they cost.")] = False,
    redo: Annotated[bool, typer.Option("--redo", help="Run these cells again and replace their rows.")] = False,
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="Keep models and checkpoints too; else only the figures and logs.")
    ] = False,
    tokens: Tokens = None,
) -> None:
    """Compare methods over known shares and seeds. Run it again to go on where it stopped."""
    from fewtags.benchmark.suites import chosen
    from fewtags.recipe import Recipe

    blocks, own_recipe = chosen(suite, methods, known, seeds)
    base = Recipe.load(recipe or own_recipe)
    base = (base if words is None else base.replace(words=words)).override(set_ or [])

    from fewtags.benchmark.dry_run import dry_run as show_plan
    from fewtags.benchmark.sweep import benchmark as sweep
    from fewtags.benchmark.terminal import failure_lines, results_table

    if dry_run:
        return show_plan(data, blocks, base, out, jobs=jobs, redo=redo, tokens=tokens, console=console)
    how: dict[str, Any] = {"jobs": jobs, "redo": redo, "keep_runs": keep_runs, "tokens": tokens}
    try:
        outcome = sweep(data, blocks, base, out, **how, console=console)
    except KeyboardInterrupt:
        errors.print(f"Stopped. Go on with the same command{', without --redo' if redo else ''}.", soft_wrap=True)
        raise
    console.print(results_table(outcome.rows, outcome.cells))
    console.print(f"Results {out / 'results.csv'}, report {outcome.report}", soft_wrap=True, highlight=False)
    if outcome.failures:
        errors.print(failure_lines(outcome.failures), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1)
