"""What the commands share: consoles, arguments, processes that work together, JSON or a table."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

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


def meet_others(devices: int | None, nodes: int | None, device: str) -> bool:
    """Whether this process may write. Where several are asked for, it starts the others or joins them first."""
    from fewtags.processes.launch import run_copies, starts_others
    from fewtags.processes.place import find_place

    if starts_others(devices, nodes):
        raise typer.Exit(run_copies(devices or 1, sys.argv[1:]))
    if find_place(devices, nodes) is None:
        return True
    from fewtags.processes.meeting import meet

    return meet(devices, nodes, device)


def part_from_others() -> None:
    from fewtags.processes.meeting import part

    part()


def show(value: dict[str, Any], as_json: bool, table: Any) -> None:
    if as_json:
        typer.echo(json.dumps(value, indent=2))
    else:
        console.print(table(value))
