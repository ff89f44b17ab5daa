"""Score a trained run on any labelled data (`fewtags evaluate`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from fewtags.data import Data, open_for
from fewtags.errors import UserError
from fewtags.images.screening import told
from fewtags.labels.table import LabelTable
from fewtags.metrics import evaluate as evaluate_scores
from fewtags.predict import Tagger, load
from fewtags.training.prepare import backbone_maps


def evaluate(
    run: str | Path,
    data: str,
    split: str = "test",
    *,
    tokens: str | None = None,
    device: str = "auto",
    console: Console | None = None,
    on_bad_image: str | None = None,
) -> dict[str, Any]:
    """The metrics of metrics.json, for this run on this split of this data; unknown labels are left out.

    `on_bad_image`: "error" or "skip"; None: as the run was trained.
    """
    tagger = load(run, device)
    console = console or Console(quiet=True)
    opened = open_for(tagger.recipe, data, tokens, on_bad_image)
    if opened.skipped:
        console.print(told(opened.skipped), markup=False, highlight=False, soft_wrap=True)
    table = aligned(opened.table.split(split).without_completed(), tagger.categories, data)
    if not len(table):
        raise UserError(f"{data}: no image has split {split!r}")
    if not table.known.any():
        raise UserError(f"{data}: no label of split {split!r} is known, so there is nothing to compare with")
    probabilities = predict_table(tagger, opened, table, console)
    scores = evaluate_scores(probabilities, table.values, table.categories)
    about = {
        "run": str(run),
        "data": data,
        "split": split,
        "images": len(table),
        "skipped_images": [entry.image for entry in opened.skipped],
        "method": tagger.recipe.method,
    }
    return {**about, "known": tagger.recipe.known, "seed": tagger.recipe.seed, **scores}


def aligned(table: LabelTable, categories: list[str], data: str) -> LabelTable:
    """The table's columns in the model's order; categories the data does not have are unknown there."""
    position = {name: index for index, name in enumerate(table.categories)}
    if not any(name in position for name in categories):
        raise UserError(f"{data}: none of the model's categories is there ({', '.join(categories[:5])}, ...)")
    values = np.zeros((len(table), len(categories)), np.int8)
    for column, name in enumerate(categories):
        if name in position:
            values[:, column] = table.values[:, position[name]]
    return LabelTable(table.images, tuple(categories), values, table.splits)


def predict_table(tagger: Tagger, data: Data, table: LabelTable, console: Console) -> np.ndarray:
    """(images, categories) probabilities; features of a frozen backbone come from the cache."""
    if not tagger.recipe.freeze_backbone:
        return tagger.probabilities(data.images.open(image) for image in table.images)
    maps = backbone_maps(
        data.images, table.images, tagger.backbone, tagger.recipe, ("plain",), tagger.device, console
    )
    return tagger.probabilities_of_maps(maps[:, 0], table.images)
