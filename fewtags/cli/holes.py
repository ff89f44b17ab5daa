"""Filling the missing labels in, confirming them, and what that is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fewtags.cli.shared import (
    BadImages,
    Data,
    Device,
    Devices,
    Json,
    Nodes,
    Run,
    Tokens,
    console,
    errors,
    meet_others,
    show,
)


def complete(
    run: Run,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where labels.csv, suggestions and the report go.")],
    precision: Annotated[
        float | None,
        typer.Option(
            help="Fill only as much as keeps this precision, of the present and of the absent; default 0.95.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of that promise.")] = 0.95,
    prior: Annotated[
        str | None,
        typer.Option(metavar="FILE|estimate", help="Base rates of the unknown labels: CSV category,rate."),
    ] = None,
    audit: Annotated[
        int | None, typer.Option(min=1, help="Draw this many filled labels into DIR/audit.csv, to be checked.")
    ] = None,
    audit_result: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the answers in an audit.csv: the true precision.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write suggestions.csv too.")] = False,
    min_probability: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out suggestions less likely than this.")
    ] = 0.0,
    use_hidden: Annotated[
        bool, typer.Option("--use-hidden", help="Take labels that the run's --known hid as known.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and of the audit's sample.")] = 0,
    json_: Json = False,
    tokens: Tokens = None,
    device: Device = "auto",
    devices: Devices = None,
    nodes: Nodes = None,
    on_bad_image: BadImages = None,
) -> None:
    """Fill the unknown labels of DATA where RUN is sure, and say why."""
    from fewtags.completion.complete import Wanted, record_audit
    from fewtags.completion.complete import complete as complete_data
    from fewtags.completion.terminal import audit_lines, completion_summary

    if audit_result is not None:
        return show(record_audit(audit_result, out, confidence), json_, audit_lines)
    rest = (min_probability, use_hidden, tokens, device, seed, on_bad_image)
    wanted = Wanted(precision, confidence, prior, audit, csv, *rest)
    writer = meet_others(devices, nodes, device)
    report = complete_data(run, data, out, wanted, Console(stderr=True, quiet=json_))
    if not writer:
        return
    show(report, json_, completion_summary)
    if not json_:
        console.print(
            f"Labels {out / 'labels.csv'}, report {out / 'completion.html'}", soft_wrap=True, highlight=False
        )


def review(
    run: Run,
    data: Data,
    suggestions: Annotated[
        Path | None,
        typer.Option(help="A folder or file that `fewtags complete` wrote; default the newest below RUN."),
    ] = None,
    order: Annotated[
        str, typer.Option(help="What is asked first: value (what teaches most), uncertain, confident or random.")
    ] = "value",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8765,
    host: Annotated[str, typer.Option(help="Other than this machine: needs --token.")] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(envvar="FEWTAGS_TOKEN", help="A secret that visitors have to know.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    db: Annotated[Path | None, typer.Option(help="Where answers are kept; default beside suggestions.")] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write the labels with all answers in them to FILE.csv, and end.")
    ] = None,
    tokens: Tokens = None,
) -> None:
    """Go through suggestions on a page: yes, no, skip, undo. Every answer is kept at once."""
    from fewtags.review import start
    from fewtags.review.security import Policy

    policy = Policy(host, port, token)
    place = start.find_place(run, data, suggestions, db, tokens, console)
    if export is not None:
        return start.export(place, export, console)
    start.serve(place, order, policy, open_, console)


def simulate(
    data: Data,
    out: Annotated[Path, typer.Option(metavar="DIR", help="simulation.csv, simulation.html and the runs.")],
    start: Annotated[float, typer.Option(help="Share of the labels known before anybody is asked.")] = 0.05,
    rounds: Annotated[int, typer.Option(help="How often to ask, answer and train again.")] = 5,
    answers_per_round: Annotated[
        float, typer.Option(help="Below 1 a share of all training labels, else a number.")
    ] = 0.05,
    orders: Annotated[
        str, typer.Option(help="Orders of `review` to compare, separated by commas.")
    ] = "value,uncertain,confident,random",
    method: Annotated[str | None, typer.Option(help="Default the recipe's.", show_default=False)] = None,
    recipe: Annotated[str, typer.Option(help="default, paper, released, a method's, or a YAML file.")] = "default",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting of the recipe.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "0",
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="Keep models and checkpoints too; else only the figures.")
    ] = False,
    tokens: Tokens = None,
) -> None:
    """What the loop complete → review → train is worth: the truth in DATA answers in place of a person.

    Run it again to go on where it stopped.
    """
    from fewtags.recipe import Recipe

    chosen = Recipe.load(recipe).override(set_ or [])
    chosen = chosen if method is None else chosen.replace(method=method)

    from fewtags.benchmark.cells import parse_seeds
    from fewtags.simulation.simulate import simulate as run_simulation
    from fewtags.simulation.terminal import simulation_summary
    from fewtags.simulation.wanted import Wanted, parse_orders

    wanted = Wanted(start, rounds, answers_per_round, parse_orders(orders), parse_seeds(seeds))
    try:
        outcome = run_simulation(data, chosen, out, wanted, tokens=tokens, keep_runs=keep_runs, console=console)
    except KeyboardInterrupt:
        errors.print("Stopped. Go on with the same command.", soft_wrap=True)
        raise
    console.print(simulation_summary(outcome.rows))
    console.print(f"Rows {out / 'simulation.csv'}, page {outcome.page}", soft_wrap=True, highlight=False)
