"""DATA of the command line: a folder, the embedded set `scenes`, or `format:PATH`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fewtags.errors import UserError, printable
from fewtags.images.loading import FolderImages, ImageSource
from fewtags.labels.formats import (
    coco,
    coco_json,
    cvat,
    fiftyone,
    folder,
    label_studio,
    open_images,
    sparse,
    tags,
    visual_genome,
    voc,
)
from fewtags.labels.formats.loaded import Loaded
from fewtags.labels.formats.tokens import Tokens
from fewtags.labels.sparse import value_count, value_count_by_category
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable
from fewtags.recipe import Recipe

if TYPE_CHECKING:
    from fewtags.images.screening import Skipped

Difficult = Literal["unknown", "absent"]

FORMATS: dict[str, Callable[[Path, int, Difficult], Loaded]] = {
    "voc2007": lambda path, seed, difficult: voc.read(path, difficult),
    "coco2014": lambda path, seed, difficult: coco.read(path, 2014),
    "coco2017": lambda path, seed, difficult: coco.read(path, 2017),
    "vg200": lambda path, seed, difficult: visual_genome.read(path),
    "openimages": lambda path, seed, difficult: open_images.read(path),
    "tags": lambda path, seed, difficult: tags.read(path, seed),
    "coco": lambda path, seed, difficult: coco_json.read(path, seed),
    "label-studio": lambda path, seed, difficult: label_studio.read(path, seed),
    "fiftyone": lambda path, seed, difficult: fiftyone.read(path, seed),
    "cvat": lambda path, seed, difficult: cvat.read(path, seed),
    "sparse": lambda path, seed, difficult: sparse.read(path),
}
SCENES_OPTIONS: dict[str, Callable[[str], int | float]] = {
    "train": int,
    "test": int,
    "seed": int,
    "size": int,
    "correlation": float,
}
TOO_SCARCE = 10
"""Known present training labels below which a category gets a warning."""


@dataclass(frozen=True)
class Data:
    name: str
    table: LabelTable
    images: ImageSource
    notes: tuple[str, ...] = ()
    """Sentences to print on load."""
    complete_truth: bool = False
    """No label was unknown in the source, so what is hidden can be scored."""
    skipped: tuple[Skipped, ...] = ()
    """Images that cannot be read; the table is without them."""
    whole: LabelTable | None = None
    """The table with them, where there are any."""

    def in_whole(self, table: LabelTable) -> LabelTable:
        """`table`, whose rows are ours, with the rows of skipped images back in their places, as given."""
        if self.whole is None:
            return table
        values = self.whole.values.copy()
        values[self.whole_rows()] = table.values
        return self.whole.with_values(values)

    def whole_rows(self) -> np.ndarray:
        """Of each row of the table, its place in the whole one."""
        if self.whole is None:
            return np.arange(len(self.table))
        left_out = {entry.image for entry in self.skipped}
        return np.flatnonzero([image not in left_out for image in self.whole.images])


def open_data(
    spec: str,
    *,
    tokens: str | None = None,
    seed: int = 0,
    difficult: str = "unknown",
    scenes_options: Mapping[str, Any] | None = None,
    image_root: str | Path | None = None,
    on_bad_image: str = "error",
    keep_sparse: bool = False,
) -> Data:
    """Read what DATA names. `seed` is that of the split, where the data bring none.

    `image_root`: of a folder, where its images are if not beside the label file. `on_bad_image`: "skip" leaves the
    rows of images that cannot be read out of the table; else opening one is an error. `keep_sparse`: a table of
    sparse shards stays sparse, which training can read.
    """
    kind, _, rest = str(spec).partition(":")
    if image_root is not None and (kind == "scenes" or kind in FORMATS):
        raise UserError(f"--images is for folders with a label file; {kind} knows where its images are")
    if kind == "scenes":
        return _open_scenes(spec, _scenes_options(spec, rest) | dict(scenes_options or {}))
    if kind in FORMATS:
        name, loaded = kind, _read_format(kind, rest, seed, difficult, tokens, keep_sparse)
    else:
        name, loaded = _read_folder(spec, tokens, seed, image_root)
    _check_text(spec, loaded.table)
    notes = (*loaded.notes, *_split_notes(loaded.table))
    complete = value_count(loaded.table.values, UNKNOWN) == 0
    data = Data(name, loaded.table, FolderImages(loaded.root), notes, complete)
    return without_bad_images(data) if on_bad_image == "skip" else data


def _check_text(spec: str, table: LabelTable) -> None:
    """JSON can spell names that neither a file system nor a UTF-8 file can hold."""
    for name in (*table.images, *table.categories):
        if "\0" in name or printable(name) != name:
            raise UserError(f"{spec}: {printable(repr(name))} holds a letter that no file name can; rename it")


def open_for(
    recipe: Recipe, spec: str, tokens: str | None, on_bad_image: str | None = None, keep_sparse: bool = False
) -> Data:
    """DATA as a run with this recipe reads it; `on_bad_image` None: as the recipe says."""
    how: dict[str, Any] = {"difficult": recipe.difficult, "on_bad_image": on_bad_image or recipe.on_bad_image}
    return open_data(spec, tokens=tokens, keep_sparse=keep_sparse, **how)


def without_bad_images(data: Data) -> Data:
    """The data without the rows of images that cannot be read; a note says which those are."""
    from fewtags.images.screening import told, unreadable

    skipped = tuple(unreadable(data.table.images, data.images))
    if not skipped:
        return data
    left_out = {entry.image for entry in skipped}
    rows = np.flatnonzero([image not in left_out for image in data.table.images])
    if not len(rows):
        raise UserError(f"{data.name}: none of its {len(data.table)} images can be read; {skipped[0].reason}")
    notes = (*data.notes, told(skipped))
    return replace(data, table=data.table.rows(rows), notes=notes, skipped=skipped, whole=data.table)


def _read_format(
    kind: str, path: str, seed: int, difficult: str, tokens: str | None, keep_sparse: bool = False
) -> Loaded:
    if tokens is not None:
        raise UserError(f"--tokens is for folders with a label file; {kind} says itself what its labels mean")
    if difficult not in ("unknown", "absent"):
        raise UserError(f"difficult={difficult}: it is unknown or absent")
    if not Path(path).exists() or not path:
        raise UserError(f"{kind}:{path}: there is no such folder; write {kind}:PATH")
    if kind == "sparse" and keep_sparse:
        return sparse.read_for_training(path)
    return FORMATS[kind](Path(path), seed, cast(Difficult, difficult))


def _read_folder(spec: str, tokens: str | None, seed: int, image_root: str | Path | None) -> tuple[str, Loaded]:
    path = Path(spec)
    if not path.exists():
        known = ", ".join(f"{kind}:PATH" for kind in FORMATS)
        raise UserError(f"{spec}: there is no such folder. DATA is a folder, scenes, or one of {known}")
    loaded = folder.read(path, Tokens.parse(tokens), seed, image_root)
    return loaded.root.resolve().name, loaded


def _open_scenes(spec: str, options: Mapping[str, Any]) -> Data:
    from fewtags.images.scenes import scenes

    table, images = scenes(**options)
    return Data("scenes", table, images, (), complete_truth=True)


def _scenes_options(spec: str, text: str) -> dict[str, int | float]:
    """`train=2000,test=1000,correlation=0.5,size=160,seed=3`, any of them."""
    options: dict[str, int | float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        try:
            options[name.strip()] = SCENES_OPTIONS[name.strip()](value)
        except (KeyError, ValueError) as problem:
            choices = ", ".join(f"{key}=NUMBER" for key in SCENES_OPTIONS)
            raise UserError(f"{spec}: {part!r} is not understood; scenes takes {choices}") from problem
    return options


def with_correlation(spec: str, correlation: float | None) -> str:
    """The DATA `spec` of scenes with this correlation."""
    if correlation is None:
        return spec
    kind, _, rest = spec.partition(":")
    if kind != "scenes":
        raise UserError(f"--correlation {correlation}: it is a setting of `scenes`, not of {spec}")
    return f"{kind}:" + ",".join(filter(None, (rest, f"correlation={correlation}")))


def _split_notes(table: LabelTable) -> tuple[str, ...]:
    return tuple(f"there are no {split} images" for split in (TRAIN, TEST) if split not in table.splits)


class SplitCounts(NamedTuple):
    split: str
    images: int
    present: int
    absent: int
    unknown: int


def counts(table: LabelTable) -> list[SplitCounts]:
    """Images, and entries of each value, per split."""
    found = []
    for split in (TRAIN, TEST):
        part = table.split(split)
        entries = [value_count(part.values, value) for value in (PRESENT, ABSENT, UNKNOWN)]
        found.append(SplitCounts(split, len(part), *entries))
    return found


def scarce(table: LabelTable, least: int = TOO_SCARCE) -> list[tuple[str, int]]:
    """(category, known present training labels) where there are fewer than `least`."""
    present = value_count_by_category(table.split(TRAIN).values, PRESENT)
    return [(table.categories[c], int(present[c])) for c in np.flatnonzero(present < least)]


def warnings(table: LabelTable) -> list[str]:
    """What a person should know before training on it."""
    found = []
    if few := scarce(table):
        listed = ", ".join(f"{name} ({count})" for name, count in few[:20])
        more = f" and {len(few) - 20} more" if len(few) > 20 else ""
        have = "category has" if len(few) == 1 else "categories have"
        found.append(f"{len(few)} {have} fewer than {TOO_SCARCE} known present training labels: {listed}{more}")
    return found


def summary(data: Data) -> Group:
    """What was loaded, to print with Rich: notes, counts per split, warnings."""
    shown = Table(
        title=Text(f"{data.name}: {len(data.table.categories)} categories"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for column in SplitCounts._fields:
        shown.add_column(column, justify="left" if column == "split" else "right")
    for row in counts(data.table):
        shown.add_row(row.split, *(f"{number:,}" for number in row[1:]))
    notes = [Text(note) for note in data.notes]
    return Group(*notes, shown, *(Text(f"Warning: {text}", style="yellow") for text in warnings(data.table)))


def check_absents(table: LabelTable, recipe: Recipe) -> None:
    """Training on present labels alone would learn that everything is present: stop, with the choices."""
    values = table.split(TRAIN).values
    if not value_count(values, PRESENT):
        raise UserError("no training label is known to be present: there is nothing to learn")
    replaced = recipe.assume_absent is not None or recipe.sample_absent is not None
    if replaced or recipe.method == "assume_absent" or value_count(values, ABSENT):
        return
    raise UserError(
        "no training label is known to be absent: a model would learn that everything is present. Choose:\n"
        "  --assume-absent WEIGHT   take every unknown label as absent, with this weight in the loss\n"
        "  --sample-absent N        per present label, draw N unknown ones as weak absents\n"
        "  or add labels that are known to be absent"
    )
