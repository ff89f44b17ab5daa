"""Training, scoring and using a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

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
    Split,
    Tokens,
    console,
    errors,
    meet_others,
    part_from_others,
    show,
)


def train(
    data: Data,
    method: Annotated[str | None, typer.Option(help="The system to train; `fewtags methods` lists them.")] = None,
    known: Annotated[
        float | None, typer.Option(help="Keep this share of the given labels, hide the rest.")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="lite0, lite1, lite2 or any timm model.")] = None,
    freeze_backbone: Annotated[
        bool | None, typer.Option("--freeze-backbone/--train-backbone", help="Default: frozen without a GPU.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training images.")] = None,
    limit: Annotated[int | None, typer.Option(help="Use this many training images only.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    words: Annotated[str | None, typer.Option(help="Word vectors: .npz, GloVe text file, or hub:NAME.")] = None,
    assume_absent: Annotated[
        float | None, typer.Option(help="Take unknown labels as absent with this weight.")
    ] = None,
    sample_absent: Annotated[
        int | None, typer.Option(help="Draw this many unknown labels per present one as weak absents.")
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(help="Share of the known labels to keep out of training; `complete` needs some."),
    ] = None,
    correlation: Annotated[
        float | None, typer.Option(min=0, max=1, help="Of `scenes`: 0 draws its categories independently.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="default, paper, released, a method's, or a YAML file.")] = "default",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting of the recipe.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; default runs/NAME.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    init: Annotated[Path | None, typer.Option(help="Start from this trained run.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    time_budget: Annotated[str | None, typer.Option(help="Train as many epochs as fit: 30m, 2h.")] = None,
    devices: Devices = None,
    nodes: Nodes = None,
    on_bad_image: BadImages = None,
    tokens: Tokens = None,
) -> None:
    """Train a tagger on DATA. Without flags: a GPU if there is one, else a frozen `lite0` on the CPU."""
    from fewtags.recipe import Recipe

    flags = {
        "method": method,
        "known": known,
        "backbone": backbone,
        "freeze_backbone": freeze_backbone,
        "epochs": epochs,
        "limit": limit,
        "seed": seed,
        "words": words,
        "assume_absent": assume_absent,
        "sample_absent": sample_absent,
        "holdout": holdout,
        "device": device,
        "on_bad_image": None if on_bad_image is None else on_bad_image.value,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    chosen = Recipe.load(recipe).replace(**given).override(set_ or [])
    writer = meet_others(devices, nodes, chosen.device)

    from fewtags.data import with_correlation
    from fewtags.durations import parse_duration
    from fewtags.processes.together import said_by_first
    from fewtags.report import run_report
    from fewtags.report.terminal import metrics_table
    from fewtags.training.examples import write_examples
    from fewtags.training.run import run_name
    from fewtags.training.run import train as train_run

    data = with_correlation(data, correlation)
    folder = out or said_by_first(run_name(data, chosen, resume))
    budget = None if time_budget is None else parse_duration(time_budget)
    try:
        run = train_run(
            data, chosen, folder, tokens=tokens, resume=resume, init=init, time_budget=budget, console=console
        )
    except KeyboardInterrupt:
        how = "Continue" if (folder / "recipe.yaml").is_file() else "Start again"
        more = " --resume" if how == "Continue" else ""
        if writer:
            errors.print(f"Stopped. {how} with: fewtags train {data} --out {folder}{more}", soft_wrap=True)
        raise
    part_from_others()  # what follows, one process does alone
    if not writer:
        return
    write_examples(run.path)
    console.print(metrics_table(run.metrics()))
    console.print(f"Run folder {run.path}, report {run_report(run.path)}", soft_wrap=True, highlight=False)


def evaluate(
    run: Run,
    data: Data,
    split: Annotated[Split, typer.Option(help="Which images.")] = Split.test,
    json_: Json = False,
    tokens: Tokens = None,
    device: Device = "auto",
    on_bad_image: BadImages = None,
) -> None:
    """Score a trained RUN on labelled DATA; unknown labels are left out."""
    from fewtags.evaluation import evaluate as evaluate_run
    from fewtags.report.terminal import metrics_table

    quiet = Console(stderr=True, quiet=json_)
    how: dict[str, Any] = {"tokens": tokens, "device": device, "on_bad_image": on_bad_image}
    metrics = evaluate_run(run, data, split.value, console=quiet, **how)
    show(metrics, json_, metrics_table)


def predict(
    run: Run,
    images: Annotated[
        list[Path], typer.Argument(metavar="IMAGE_OR_FOLDER...", help="Images, or folders of them.")
    ],
    top: Annotated[int | None, typer.Option(min=1, help="The K most likely tags of each image.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="One threshold for all; default each category's own, from held-out labels."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to FILE.csv, .parquet or .json.")] = None,
    device: Device = "auto",
    devices: Devices = None,
    nodes: Nodes = None,
    on_bad_image: BadImages = None,
) -> None:
    """Tag images with a trained RUN."""
    from fewtags.images.screening import SKIPPED, told, write_skipped
    from fewtags.predict import (
        image_files,
        load,
        predict_files,
        prediction_table,
        show_predictions,
        write_predictions,
    )

    writer = meet_others(devices, nodes, device)
    tagger = load(run, device)
    found = predict_files(
        tagger,
        image_files(images),
        top=top,
        threshold=threshold,
        console=errors,
        on_bad_image=on_bad_image,
    )
    if not writer:
        return
    if found.skipped:
        errors.print(told(found.skipped), markup=False, highlight=False, soft_wrap=True)
    if out is None:
        show_predictions(found.files, found.tags, console)
    else:
        write_predictions(prediction_table(found.files, found.tags), out)
        write_skipped(found.skipped, out.with_name(f"{out.stem}.{SKIPPED}"))
        console.print(f"{len(found.files)} images tagged: {out}", soft_wrap=True, highlight=False)


def reproduce(
    run: Run,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="Where the data are now; default where they were.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the repeated run here.")] = None,
    check_only: Annotated[
        bool, typer.Option("--check-only", help="Compare data, recipe and versions; train nothing.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Train even if data or recipe are not what they were.")
    ] = False,
    new_features: Annotated[
        bool, typer.Option("--new-features", help="Compute a frozen backbone's features again.")
    ] = False,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Accept scores that differ by so many points; default every bit counts.")
    ] = 0.0,
    json_: Json = False,
) -> None:
    """Train RUN again from what it recorded, and compare. Exit code 0: the same; 3: not the same."""
    from fewtags.reproduction.reproduce import reproduce as reproduce_run
    from fewtags.reproduction.terminal import report_lines

    how: dict[str, Any] = {"train_again": not check_only, "anyway": anyway, "new_features": new_features}
    quiet = Console(stderr=True, quiet=json_)
    report = reproduce_run(run, data, out, tolerance=tolerance, console=quiet, **how)
    if json_:
        typer.echo(json.dumps(report.as_json(), indent=2))
    else:
        console.print(report_lines(report), soft_wrap=True)
    if report.reproduced is False:
        raise typer.Exit(3)


def report(run: Run) -> None:
    """Write RUN/report.html anew from the files of the run."""
    from fewtags.report import run_report

    console.print(str(run_report(run)), soft_wrap=True, highlight=False)


def demo(
    out: Annotated[Path, typer.Option(help="Where the run folders and the report go.")] = Path("runs/demo"),
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "0",
) -> None:
    """Train `plain` and `hst` on `scenes` with 10 % of the labels known, and compare them."""
    from fewtags.demo import demo as run_demo

    run_demo(out, [int(seed) for seed in seeds.split(",")], console)
