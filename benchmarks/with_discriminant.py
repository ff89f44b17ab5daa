"""Every rival given the discriminant that `hst` has: how much of the lead is left.

    python -m benchmarks.with_discriminant SWEEP data/coco-sample --out benchmarks/with_discriminant.csv

SWEEP is the folder of a `fewtags benchmark`, with the predictions that its runs keep. The discriminant of a cell's
known labels, brought to the mean and spread of the rival's scores of each category over the test images, gets the
share of the score that it has in `hst`, or another (`--share`). A row that is there already is not made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import logit
from torch import Tensor

from benchmarks import command
from benchmarks.claim import OURS, SAME, contenders
from benchmarks.linear_trials import opened_maps, percent
from benchmarks.place_trials import BATCH, Described, read
from fewtags.benchmark.cells import Cell
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.recipe import Recipe
from fewtags.training.folder import PREDICTIONS, RunFolder
from fewtags.training.prepare import make_backbone
from fewtags.transfer.discriminant import towards

KEY = ["known", "seed", "method"]
SURE = 1e-7
"""Probabilities closer to 0 or 1 are taken as this close."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    rows = contenders(options.sweep, options.data)
    lead = rows[rows["method"] == options.method].set_index(["known", "seed"])["mAP"]
    found = _kept(options.out)
    for (known, seed), rivals in rows[rows["method"] != options.method].groupby(["known", "seed"]):
        runs = _runs(options, rivals[[not _is_done(row, found) for row in rivals.itertuples()]])
        if (known, seed) in lead.index and runs:
            mixed = beside_each(options.data, runs, options.share)
            found += [{"known": known, "seed": seed, "method": name, **scores} for name, scores in mixed.items()]
    if not found:
        raise UserError(f"{options.sweep}: none of its runs has kept its predictions")
    table = pd.DataFrame(found).drop_duplicates(KEY, keep="last").sort_values(KEY, kind="stable")
    table[options.method] = [lead[known, seed] for known, seed in zip(table["known"], table["seed"], strict=True)]
    write_text(options.out, table.round(3).to_csv(index=False, lineterminator="\n"))
    print(table.to_string(index=False))
    return 0


def _kept(file: str) -> list[dict[str, Any]]:
    return pd.read_csv(file).to_dict("records") if Path(file).is_file() else []


def _is_done(row: Any, found: list[dict[str, Any]]) -> bool:
    """Whether this row of a sweep is among those kept, with the same mAP."""
    return any(
        all(getattr(row, name) == kept[name] for name in KEY) and abs(row.mAP - kept["mAP"]) < SAME
        for kept in found
    )


def _runs(options: argparse.Namespace, rivals: pd.DataFrame) -> dict[str, RunFolder]:
    """method → its run, of those whose predictions are there."""
    cells = [
        Cell(row.data, options.data, str(row.method), float(row.known), int(row.seed))
        for row in rivals.itertuples()
    ]
    folders = {cell.method: Path(options.sweep) / "runs" / cell.folder for cell in cells}
    return {method: RunFolder(folder) for method, folder in folders.items() if (folder / PREDICTIONS).is_file()}


def beside_each(data: str, runs: dict[str, RunFolder], share: float) -> dict[str, dict[str, float]]:
    """Runs that know the same labels → method → its mAP in percent, alone and with `share` of the discriminant."""
    recipe = next(iter(runs.values())).recipe()
    maps, images, known = opened_maps(data, recipe.replace(views=("plain",)))
    beside = discriminant_scores(maps.train, maps.scored, known, recipe)
    found = {}
    for method, run in runs.items():
        _, probabilities = run.predictions()
        scores = torch.from_numpy(logit(np.clip(probabilities.astype(np.float64), SURE, 1 - SURE)))
        mixed = torch.lerp(scores, brought_to(scores, beside), share)
        found[method] = {"mAP": percent(images, scores), "with_discriminant": percent(images, mixed)}
    return found


def discriminant_scores(train: np.ndarray, scored: np.ndarray, known: Tensor, recipe: Recipe) -> Tensor:
    """Maps (n, 1, channels, H, W) and known labels (n, C) of training images → scores (m, C) of others."""
    described = Described(train, known, make_backbone(recipe).classes)
    spread = described.images.spread
    trust = spread.trust(described.images.ridge).unsqueeze(1)
    weight = spread.directions @ (trust * towards(spread, known == 1))  # (F, C)
    starts = range(0, len(scored), BATCH)
    return torch.cat([described.description(read(scored[start : start + BATCH, 0])) @ weight for start in starts])


def brought_to(scores: Tensor, beside: Tensor) -> Tensor:
    """Scores (m, C) of two kinds → the second with the mean and spread of the first in each category."""
    spread = beside.std(0)
    scale = torch.where(spread > 0, scores.std(0) / spread, 0.0)
    return (beside - beside.mean(0)) * scale + scores.mean(0)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.with_discriminant", description=about)
    parser.add_argument("sweep")
    parser.add_argument("data")
    parser.add_argument("--method", default=OURS)
    parser.add_argument(
        "--share", type=float, default=Recipe().discriminant_share, help="of the score; %(default)s"
    )
    parser.add_argument("--out", default="benchmarks/with_discriminant.csv")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    command.run(main)
