"""The recipe of each method in a sweep: made, stored beside the results, and compared when a sweep goes on.

What is stored names no path: `words` and `backbone_weights` are kept as the file's name and a hash of its content,
so that a sweep goes on where the file lies elsewhere, and stops where it is another file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fewtags.benchmark.cells import Cell, file_name
from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.methods.variants import definition, method_class
from fewtags.recipe import Recipe
from fewtags.training.prepare import choose_device, resolved

FOLDER = "recipes"
NEUTRAL: dict[str, Any] = {"device": "auto", "workers": None, "threads": None}
"""Where it is computed does not decide the result."""
FILES = ("words", "backbone_weights")


def settled(base: Recipe) -> Recipe:
    """With what depends on the machine decided: else a sweep could go on with a trained backbone on a GPU."""
    return resolved(base, choose_device(base.device), {})


def portable(base: Recipe) -> Recipe:
    """The same without anything of this machine."""
    files = {name: _by_content(getattr(base, name), name) for name in FILES}
    return base.replace(**NEUTRAL, **files)


def cell_recipe(base: Recipe, cell: Cell) -> Recipe:
    """The sweep's (settled) recipe with the cell's values and the method's definition."""
    own = {"method": cell.method, "known": cell.known, "seed": cell.seed}
    return base.replace(
        **own, **{name: value for name, value in definition(cell.method).items() if name not in own}
    )


def _by_content(path: str | None, setting: str) -> str | None:
    if path is None or path.startswith("hub:"):
        return path
    if not Path(path).is_file():
        raise UserError(f"{setting}={path}: there is no such file")
    with Path(path).open("rb") as file:
        return f"{Path(path).name} sha256:{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"


def method_recipes(base: Recipe, cells: Iterable[Cell]) -> dict[str, Recipe]:
    """method → its recipe as stored, `known` and `seed` at their defaults. `base` is portable."""
    examples = {cell.method: cell for cell in cells}
    return {method: cell_recipe(base, cell).replace(known=1.0, seed=0) for method, cell in examples.items()}


def check_stored(folder: Path, recipes: Mapping[str, Recipe], rows: pd.DataFrame) -> None:
    """Rows made with another recipe must not stand beside new ones: name what differs, and what to do."""
    differing: dict[str, list[str]] = {}
    for method in changed(folder, recipes, rows):
        settings = "; ".join(differences(stored(folder, method), recipes[method]))
        differing.setdefault(settings, []).append(method)
    problems = Problems(
        f"{folder}: its results were made with other settings (stored → now). Choose another --out, take the "
        "settings back, or run these cells again and replace their rows with --redo"
    )
    for settings, methods in differing.items():
        more = f" and {len(methods) - 3} more" if len(methods) > 3 else ""
        problems.add(f"{', '.join(methods[:3])}{more}: {settings}")
    problems.raise_if_any()


def changed(folder: Path, recipes: Mapping[str, Recipe], rows: pd.DataFrame) -> list[str]:
    """The methods with rows that were made with another recipe."""
    with_rows = [method for method in recipes if (rows["method"] == method).any()]
    return [
        method
        for method in with_rows
        if _file(folder, method).is_file() and differences(stored(folder, method), recipes[method])
    ]


def stored(folder: Path, method: str) -> Recipe:
    """Fields that are newer than the file take their defaults."""
    return Recipe.load(_file(folder, method))


def store(folder: Path, recipes: Mapping[str, Recipe]) -> None:
    for method, recipe in recipes.items():
        write_text(_file(folder, method), recipe.to_yaml())


def differences(old: Recipe, new: Recipe) -> list[str]:
    """`epochs: 20 → 6`, without settings that the method does not read."""
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    read = [name for name in before if name not in method_class(new.method).not_read]
    return [f"{name}: {before[name]} → {after[name]}" for name in read if before[name] != after[name]]


def _file(folder: Path, method: str) -> Path:
    return folder / FOLDER / f"{file_name(method)}.yaml"
