"""The same few configurations of every method, scored on the development split: what the protocol chooses by.

    python -m benchmarks.tuning data/coco-sample --words coco80.npz --out benchmarks/tuning.csv

Each method as the recipe has it, with a third and three times its learning rate, with half the epochs (more
would leave the budget that all methods share), with a setting of its own, and with ten times the decay; or, with
`--changes pair_loss=bce evidence=sum`, as it is and with each of these settings (several at once in quotes). A
row that is there already is not run again, so the command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from benchmarks import command
from fewtags.benchmark.grid import UPPER_BOUND
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.methods import METHODS
from fewtags.recipe import Recipe
from fewtags.training.run import train

DEVELOPMENT = 2000
COUNTS = ("intra_made", "intra_right", "cross_made", "cross_right", "reachable")
"""Labels filled in the last epoch, and hidden present ones within reach of a known one."""
COLUMNS = ("method", "configuration", "settings", "known", "seed", "mAP", *COUNTS)
LEFT_OUT = (UPPER_BOUND, "hst_fb")
AS_IT_IS = "as it is"


ITS_OWN: Mapping[str, dict[str, float | str]] = {
    "plain_pl": {"confidence": 0.5},
    "ssgrl_pl": {"confidence": 0.5},
    "curriculum": {"curriculum_threshold": 0.7},
    "gcn_ml": {"edge_threshold": 0.2},
    "p_gcn": {"edge_threshold": 0.2},
    "sst": {"threshold_floor": 0.5},
    "sarb": {"blend_weight": 0.5},
    "ssgrl": {"graph_steps": 1},
    "kggr": {"graph_steps": 1},
}
"""A setting that only this method and its relatives have. Linear methods without own labels have none; hst has
many, which are tried by `--changes`."""


def configurations(recipe: Recipe) -> dict[str, dict[str, float | str]]:
    """By name: what differs from the recipe. The rate is that of the part which the method trains most."""
    rate = "head_lr" if METHODS[recipe.method].uses_map else "shortcut_lr"
    value = getattr(recipe, rate)
    return {
        AS_IT_IS: {},
        "a third of the rate": {rate: value / 3},
        "three times the rate": {rate: value * 3},
        "half the epochs": {"epochs": max(1, recipe.epochs // 2)},
        **({"a setting of its own": ITS_OWN[recipe.method]} if recipe.method in ITS_OWN else {}),
        "ten times the decay": {"weight_decay": recipe.weight_decay * 10},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    base = Recipe.load(options.recipe)
    base = base.replace(
        words=options.words, development=options.development, score="development", seed=options.seed
    )
    unknown = [method for method in options.methods if method not in METHODS]
    if unknown:
        raise UserError(f"there is no method {unknown[0]!r}")
    for name, recipe in _planned([base.replace(method=method) for method in options.methods], options.changes):
        row = {"method": recipe.method, "configuration": name, "known": recipe.known, "seed": recipe.seed}
        if not _is_done(row, options.out):
            row |= {"settings": _differences(base, recipe), **_scored(options.data, recipe)}
            _add(row, options.out)
            print(f"{recipe.method}, {name}: {row['mAP']:.2f}", flush=True)
    return 0


def _planned(methods: Sequence[Recipe], changes: Sequence[str]) -> Iterator[tuple[str, Recipe]]:
    """Each configuration's name and recipe: of all methods the first, then of all the second."""
    if changes:
        tried = [
            {AS_IT_IS: recipe} | {change: recipe.override(change.split()) for change in changes}
            for recipe in methods
        ]
    else:
        tried = [
            {name: recipe.replace(**settings) for name, settings in configurations(recipe).items()}
            for recipe in methods
        ]
    for name in dict.fromkeys(name for recipes in tried for name in recipes):
        yield from ((name, recipes[name]) for recipes in tried if name in recipes)


def _scored(data: str, recipe: Recipe) -> dict[str, float | None]:
    with tempfile.TemporaryDirectory() as folder:
        found = train(data, recipe, Path(folder) / "run").metrics()
    return {"mAP": float(found["mAP"]), **{name: found["pseudo_labels"].get(name) for name in COUNTS}}


def _differences(base: Recipe, recipe: Recipe) -> str:
    before, after = base.model_dump(), recipe.model_dump()
    changed = {name: value for name, value in after.items() if value != before[name] and name != "method"}
    return " ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in changed.items()
    )


def read(file: str | Path) -> pd.DataFrame:
    if not Path(file).is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(file, keep_default_na=False)


def _is_done(row: Mapping[str, object], file: str | Path) -> bool:
    rows = read(file)
    return bool(len(rows)) and bool((rows[list(row)] == pd.Series(row)).all(axis=1).any())


def _add(row: Mapping[str, object], file: str | Path) -> None:
    rows = pd.concat([read(file), pd.DataFrame([row])], ignore_index=True)[list(COLUMNS)]
    write_text(file, rows.round({"mAP": 3}).to_csv(index=False, lineterminator="\n"))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__.split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--methods", nargs="+", default=[name for name in METHODS if name not in LEFT_OUT])
    parser.add_argument("--changes", nargs="+", default=[], metavar="KEY=VALUE", help="try these settings instead")
    parser.add_argument("--recipe", default="coco_benchmark")
    parser.add_argument("--words")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--development", type=int, default=DEVELOPMENT)
    parser.add_argument("--out", default="benchmarks/tuning.csv")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    command.run(main)
