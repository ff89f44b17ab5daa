"""Looking at data, starting labels, turning formats into others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fewtags.cli.shared import BadImages, Data, Difficult, DifficultObjects, Form, Tokens, console


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


def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of images.")],
    categories: Annotated[str, typer.Option(help="Category names, separated by commas.")] = "",
) -> None:
    """Write a labels.csv template for a folder of images, every label still unknown."""
    from fewtags.new import new_template

    path = new_template(folder, [name.strip() for name in categories.split(",") if name.strip()])
    console.print(f"{path}: fill in 1 for present, 0 for absent; leave unknown entries empty.", soft_wrap=True)


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
    on_bad_image: BadImages = None,
    tokens: Tokens = None,
    difficult: DifficultObjects = Difficult.unknown,
) -> None:
    """Turn any readable format into a folder with labels.csv, or hand it over to another tool."""
    from fewtags.convert import convert as convert_data
    from fewtags.convert import parse_sample

    how: dict[str, Any] = {"to": to.value, "suggestions": suggestions, "prefix": prefix}
    how |= {"tokens": tokens, "difficult": difficult.value, "image_root": images, "labels_only": labels_only}
    how["on_bad_image"] = on_bad_image or "error"
    how["say"] = lambda note: console.print(note, markup=False, highlight=False, soft_wrap=True)
    written = convert_data(source, dest, parse_sample(sample), seed, size, **how)
    console.print(f"{written}: written", soft_wrap=True, highlight=False)
