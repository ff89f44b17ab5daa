"""The command line: verb → function, nothing else. Heavy imports happen inside the verbs, so --help is instant."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fewtags import __version__, interrupts
from fewtags.errors import BadImageError, UserError, printable
from fewtags.faults import explained

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Train an image tagger when most of the tags are missing, and fill the missing ones in.",
    epilog="Exit codes: 0 done, 2 your input needs a change, 1 a fault of ours, 130 interrupted.",
)
console = Console()
errors = Console(stderr=True)

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A folder with labels.csv, `scenes`, or voc2007:PATH, coco2014:PATH, coco2017:PATH, vg200:PATH, "
        "openimages:PATH, tags:PATH, coco:PATH, label-studio:PATH, fiftyone:PATH, cvat:PATH, sparse:PATH.",
    ),
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder made by `fewtags train`.")]
Tokens = Annotated[
    str | None,
    typer.Option(
        help="What the entries of labels.csv mean; default present=1,absent=0,unknown=", show_default=False
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Devices = Annotated[
    int | None,
    typer.Option(min=1, help="Processes on this machine that share the work: GPUs, or parts of its cores."),
]
Nodes = Annotated[
    int | None, typer.Option(min=1, help="Machines that share the work; start all with torchrun or srun.")
]


class Difficult(StrEnum):
    unknown = "unknown"
    absent = "absent"


DifficultObjects = Annotated[
    Difficult, typer.Option("--difficult", help="Of Pascal VOC: what a category of difficult objects alone is.")
]


class OnBadImage(StrEnum):
    error = "error"
    skip = "skip"


BadImages = Annotated[
    OnBadImage | None,
    typer.Option(
        "--on-bad-image",
        help="An image that cannot be read: stop and name it (error), or leave it out and list it (skip). "
        "Default: error; with a trained RUN, as it was trained.",
        show_default=False,
    ),
]


class Form(StrEnum):
    """The keys of `fewtags.labels.formats.layouts.LAYOUTS`, which is heavy to import."""

    folder = "folder"
    coco = "coco"
    voc = "voc"
    openimages = "openimages"
    tags = "tags"
    label_studio = "label-studio"
    fiftyone = "fiftyone"
    cvat = "cvat"
    sparse = "sparse"


class Split(StrEnum):
    train = "train"
    test = "test"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fewtags {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None: ...


@app.command()
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
    writer = _meet(devices, nodes, chosen.device)

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
    _part()  # what follows, one process does alone
    if not writer:
        return
    write_examples(run.path)
    console.print(metrics_table(run.metrics()))
    console.print(f"Run folder {run.path}, report {run_report(run.path)}", soft_wrap=True, highlight=False)


@app.command()
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
    _show(metrics, json_, metrics_table)


@app.command()
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

    writer = _meet(devices, nodes, device)
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


@app.command()
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
        return _show(record_audit(audit_result, out, confidence), json_, audit_lines)
    rest = (min_probability, use_hidden, tokens, device, seed, on_bad_image)
    wanted = Wanted(precision, confidence, prior, audit, csv, *rest)
    writer = _meet(devices, nodes, device)
    report = complete_data(run, data, out, wanted, Console(stderr=True, quiet=json_))
    if not writer:
        return
    _show(report, json_, completion_summary)
    if not json_:
        console.print(
            f"Labels {out / 'labels.csv'}, report {out / 'completion.html'}", soft_wrap=True, highlight=False
        )


@app.command()
def inspect(
    data: Data,
    out: Annotated[Path | None, typer.Option(help="Where to write the co-occurrence picture (.png).")] = None,
    tokens: Tokens = None,
    difficult: DifficultObjects = Difficult.unknown,
) -> None:
    """Show what DATA holds: counts, category frequencies, what is too scarce, and co-occurrence."""
    from fewtags.data import open_data
    from fewtags.inspect_data import inspect as inspect_data

    inspect_data(open_data(data, tokens=tokens, difficult=difficult.value), out, console)


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of images.")],
    categories: Annotated[str, typer.Option(help="Category names, separated by commas.")] = "",
) -> None:
    """Write a labels.csv template for a folder of images, every label still unknown."""
    from fewtags.new import new_template

    path = new_template(folder, [name.strip() for name in categories.split(",") if name.strip()])
    console.print(f"{path}: fill in 1 for present, 0 for absent; leave unknown entries empty.", soft_wrap=True)


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="Any DATA that `train` reads.")],
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="A new folder.")],
    sample: Annotated[
        str | None, typer.Option(metavar="TRAIN,TEST", help="Draw this many train and test images.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    size: Annotated[int | None, typer.Option(min=8, help="Resize images to this many pixels square.")] = None,
    to: Annotated[Form, typer.Option(help="The format to write.")] = Form.folder,
    suggestions: Annotated[
        Path | None,
        typer.Option(help="Of label-studio: a file of suggestions by `fewtags complete`, as predictions."),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Of a folder: where its images are, if not beside labels.csv.")
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Of label-studio: goes before image paths, such as /data/local-files/?d=pets/")
    ] = "",
    labels_only: Annotated[
        bool, typer.Option("--labels-only", help="Of sparse: images stay where they are, only labels are written.")
    ] = False,
    tokens: Tokens = None,
    difficult: DifficultObjects = Difficult.unknown,
) -> None:
    """Turn any readable format into a folder with labels.csv, or hand it over to another tool."""
    from fewtags.convert import convert as convert_data
    from fewtags.convert import parse_sample

    how: dict[str, Any] = {"to": to.value, "suggestions": suggestions, "prefix": prefix}
    how |= {"tokens": tokens, "difficult": difficult.value, "image_root": images, "labels_only": labels_only}
    how["say"] = lambda note: console.print(note, markup=False, highlight=False, soft_wrap=True)
    written = convert_data(source, dest, parse_sample(sample), seed, size, **how)
    console.print(f"{written}: written", soft_wrap=True, highlight=False)


@app.command()
def report(run: Run) -> None:
    """Write RUN/report.html anew from the files of the run."""
    from fewtags.report import run_report

    console.print(str(run_report(run)), soft_wrap=True, highlight=False)


@app.command()
def export(
    run: Run,
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="The ONNX file to write.")],
) -> None:
    """Write RUN's model to an ONNX file, and check that it gives what `predict` gives."""
    from fewtags.export import export_onnx

    done = export_onnx(run, onnx)
    console.print(
        f"{done.path}: {done.megabytes:.1f} MB; over {done.images} random images its probabilities differ from "
        f"`fewtags predict` by at most {done.difference:.1e}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


@app.command()
def serve(
    source: Annotated[
        Path, typer.Argument(metavar="RUN_OR_FILE", help="A run folder, or an ONNX file made by `fewtags export`.")
    ],
    host: Annotated[str, typer.Option(help="0.0.0.0 for every network; default this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(envvar="FEWTAGS_TOKEN", show_envvar=True, help="What clients have to send as bearer token."),
    ] = None,
    without_token: Annotated[
        bool, typer.Option("--without-token", help="Let anyone who reaches another --host use it.")
    ] = False,
    max_batch: Annotated[int, typer.Option(min=1, help="Images computed at a time; a GPU likes 32.")] = 8,
    max_wait_ms: Annotated[float, typer.Option(min=0, help="How long an image waits for others.")] = 5.0,
    max_queue: Annotated[int, typer.Option(min=1, help="Images under way at once; beyond, 503.")] = 128,
    max_images: Annotated[int, typer.Option(min=1, help="Images in one request.")] = 16,
    max_image_mb: Annotated[float, typer.Option(min=0.001, help="Megabytes of one image's file.")] = 10.0,
    max_pixels: Annotated[int, typer.Option(min=1, help="Width times height of one image.")] = 50_000_000,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to receive a request, or answer it.")] = 30.0,
    threads: Annotated[int | None, typer.Option(min=1, help="Cores the model may use; default all.")] = None,
    device: Device = "auto",
) -> None:
    """Tag images over HTTP: POST them to /predict. See also /health, /categories and /metrics."""
    from fewtags.serve.limits import Limits
    from fewtags.serve.run import serve as serve_model

    limits = Limits(max_batch, max_wait_ms, max_queue, max_images, max_image_mb, max_pixels, timeout)
    how: dict[str, Any] = {"token": token, "without_token": without_token, "device": device, "threads": threads}
    serve_model(source, host, port, limits, **how, console=console)


@app.command()
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
    _show(summaries, json_, methods_table)


@app.command()
def benchmark(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", help="One or more data sets, each as for `train`."),
    ],
    out: Annotated[Path, typer.Option(help="The sweep's folder: results.csv, report.html, recipes, runs.")],
    methods: Annotated[
        str | None, typer.Option(help="Methods and variants, separated by commas; default every method.")
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


@app.command()
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


@app.command()
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


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the run folders and the report go.")] = Path("runs/demo"),
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "0",
) -> None:
    """Train `plain` and `hst` on `scenes` with 10 % of the labels known, and compare them."""
    from fewtags.demo import demo as run_demo

    run_demo(out, [int(seed) for seed in seeds.split(",")], console)


@app.command()
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


cache_app = typer.Typer(help="What the cache holds, and deleting what is no longer used.")
app.add_typer(cache_app, name="cache")


@cache_app.callback(invoke_without_command=True)
def cache(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        cache_list()


@cache_app.command("list")
def cache_list() -> None:
    """Show cached features and indexes: size, and when they were last used. The same as `fewtags cache`."""
    from fewtags.images.cache import cache_folder
    from fewtags.images.cache_files import show_cache

    show_cache(cache_folder(), console)


@cache_app.command("clean")
def cache_clean(
    older_than: Annotated[
        str | None, typer.Option(help="What was not used for so long: 30d, 12h.", show_default=False)
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete it; else only say what would be deleted.")] = False,
) -> None:
    """Delete cached features and indexes; they are computed again when needed."""
    from fewtags.durations import parse_duration
    from fewtags.images.cache import cache_folder
    from fewtags.images.cache_files import clean_cache

    if (older_than is None) == (not all_):
        raise UserError("say what to delete: --older-than 30d, or --all")
    age = 0.0 if older_than is None else parse_duration(older_than)
    clean_cache(cache_folder(), age, yes, console)


def _meet(devices: int | None, nodes: int | None, device: str) -> bool:
    """Whether this process may write. Where several are asked for, it starts the others or joins them first."""
    from fewtags.processes.launch import run_copies, starts_others
    from fewtags.processes.place import find_place

    if starts_others(devices, nodes):
        raise typer.Exit(run_copies(devices or 1, sys.argv[1:]))
    if find_place(devices, nodes) is None:
        return True
    from fewtags.processes.meeting import meet

    return meet(devices, nodes, device)


def _part() -> None:
    from fewtags.processes.meeting import part

    part()


def _show(value: dict[str, Any], as_json: bool, table: Any) -> None:
    if as_json:
        typer.echo(json.dumps(value, indent=2))
    else:
        console.print(table(value))


def main() -> None:
    """Run a command; a user's mistake is one message and exit code 2."""
    interrupts.listen()
    try:
        app()
    except UserError as mistake:
        errors.print(f"Error: {printable(str(mistake))}", markup=False, highlight=False, soft_wrap=True)
        if isinstance(mistake, BadImageError):
            hint = "train, predict, evaluate and complete can leave such images out: --on-bad-image skip"
            errors.print(hint, highlight=False, soft_wrap=True)
        sys.exit(2)
    except (OSError, RuntimeError) as fault:  # of the machine, not ours: a full disk, a killed process
        told = explained(fault)
        if told is None:
            raise
        errors.print(f"Error: {printable(str(told))}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
