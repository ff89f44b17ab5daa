"""`fewtags demo`: `plain` and `hst` on the embedded scenes with a tenth of the labels, side by side."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console

from fewtags.recipe import Recipe
from fewtags.report import comparison_picture, comparison_report
from fewtags.report.terminal import metrics_table
from fewtags.training.examples import write_examples
from fewtags.training.folder import RunFolder
from fewtags.training.run import train

DATA = "scenes:train=2000,test=1000"
RECIPE = "demo"
METHODS_SHOWN = ("plain", "hst")


def demo(out: Path, seeds: Sequence[int], console: Console) -> None:
    """Train both methods with the same budget for each seed, print the table, write the report of the first."""
    recipe = Recipe.load(RECIPE)
    rows = []
    for seed in seeds:
        folder = out if len(seeds) == 1 else out / f"seed-{seed}"
        for method in METHODS_SHOWN:
            rows.append(_trained(recipe.replace(method=method, seed=seed), folder / method, console).metrics())
    console.print(metrics_table(rows))
    if len(seeds) > 1:
        _say_margins(rows, console)
    else:
        console.print(f"Report: {_report(recipe.replace(seed=seeds[0]), out, console)}", soft_wrap=True)


def _trained(recipe: Recipe, folder: Path, console: Console) -> RunFolder:
    """Train from scratch: what an earlier demo left is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    console.rule(f"{folder}")
    return train(DATA, recipe, folder, console=console)


def _say_margins(rows: list[dict[str, Any]], console: Console) -> None:
    """HST against plain, seed by seed."""
    scores = {(row["method"], row["seed"]): row["mAP"] for row in rows}
    margins = {row["seed"]: scores["hst", row["seed"]] - scores["plain", row["seed"]] for row in rows}
    listed = ", ".join(f"seed {seed}: {margin:+.1f}" for seed, margin in margins.items())
    ahead = sum(margin > 0 for margin in margins.values())
    console.print(
        f"HST ahead on {ahead} of {len(margins)} seeds: mAP {listed}; "
        f"mean {mean(margins.values()):+.1f}, smallest {min(margins.values()):+.1f}",
        highlight=False,
    )


def _report(recipe: Recipe, out: Path, console: Console) -> Path:
    """The page and a picture of it; two more short runs are in them: attention by SA, and IST without its loss."""
    short = recipe.replace(method="hst", epochs=max(2, recipe.epochs // 2), cross=False)
    attention = _trained(short.replace(category_features="sa"), out / "pictures" / "sa", console)
    no_loss = short.replace(intra_weight=0.0, dtl_gradient="through")
    without_loss = _trained(no_loss, out / "pictures" / "ist_without_loss", console)
    rows = write_examples(out / "hst", {"sa": attention.path}, without_loss.path)
    write_examples(out / "plain", rows=rows)
    runs = [out / method for method in METHODS_SHOWN]
    comparison_picture(runs, out / "picture.png")
    return comparison_report(runs, out / "report.html", "fewtags: 10 % of the labels known")
