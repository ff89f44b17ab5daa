"""A sweep's folder: which cells it has, which of them are done, and what they run.

results.csv · recipes/METHOD.yaml · runs/CELL/ (a run folder and log.txt) · report.html
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import fewtags
from fewtags.benchmark import recipes
from fewtags.benchmark.cells import Block, Cell, cells
from fewtags.benchmark.results import KEY, read_results, row_of, with_row, write_results
from fewtags.errors import UserError
from fewtags.methods import METHODS
from fewtags.methods.variants import VARIANTS
from fewtags.recipe import Recipe
from fewtags.training.folder import PREDICTIONS, RunFolder

LOG = "log.txt"
KEPT = {LOG, "metrics.json", "recipe.yaml", "history.csv", PREDICTIONS}
"""Files of a run that stay; the others would fill the disk over hundreds of cells."""
METHOD_ORDER = (*METHODS, *VARIANTS)


class Plan:
    """The cells of a sweep in a folder. Nothing is written before `start`."""

    def __init__(self, data: Sequence[str], blocks: Sequence[Block], recipe: Recipe, folder: Path):
        self.folder = folder
        self.cells = cells(data, blocks)
        self.base = recipes.settled(recipe)
        self.shown = recipes.portable(self.base)
        """The same without paths of this machine."""
        self.recipes = recipes.method_recipes(self.shown, self.cells)
        self.rows = read_results(folder)

    def check(self, redo: bool) -> None:
        """Rows and cells of one method must come from one recipe."""
        if not redo:
            return recipes.check_stored(self.folder, self.recipes, self.rows)
        changed = recipes.changed(self.folder, self.recipes, self.rows)
        stale = self.rows[self.rows["method"].isin(changed) & ~self._planned()]
        if len(stale):
            names = ", ".join(sorted(set(stale["method"])))
            raise UserError(
                f"{self.folder}: {len(stale)} rows of {names} were made with other settings and are not among the "
                "cells to redo: include them, or choose another --out"
            )

    def start(self, redo: bool) -> None:
        """Store the recipes. To redo cells their rows go first, so that an interruption leaves no old ones."""
        if redo and self._planned().any():
            self.rows = self.rows[~self._planned()]
            self._write()
        if redo:
            for cell in self.cells:
                shutil.rmtree(self.run_folder(cell), ignore_errors=True)
        recipes.store(self.folder, self.recipes)

    def _planned(self) -> pd.Series:
        """(rows,) bool: which of them are of this plan's cells."""
        wanted = {tuple(cell.key.values()) for cell in self.cells}
        planned = [key in wanted for key in self.rows[list(KEY)].itertuples(index=False, name=None)]
        return pd.Series(planned, index=self.rows.index, dtype=bool)

    def left(self) -> list[Cell]:
        done = set(self.rows[list(KEY)].itertuples(index=False, name=None))
        return [cell for cell in self.cells if tuple(cell.key.values()) not in done]

    def recipe(self, cell: Cell) -> Recipe:
        return recipes.cell_recipe(self.base, cell)

    def run_folder(self, cell: Cell) -> Path:
        return self.folder / "runs" / cell.folder

    def is_finished(self, cell: Cell) -> bool:
        return RunFolder(self.run_folder(cell)).is_complete() and self._same_recipe(cell)

    def make_ready(self, cell: Cell) -> bool:
        """Whether to resume the cell's run; what another recipe left behind is deleted."""
        if (self.run_folder(cell) / "recipe.yaml").is_file() and self._same_recipe(cell):
            return True
        shutil.rmtree(self.run_folder(cell), ignore_errors=True)
        return False

    def _same_recipe(self, cell: Cell) -> bool:
        try:
            return RunFolder(self.run_folder(cell)).recipe().hash() == self.recipe(cell).hash()
        except UserError:  # damaged
            return False

    def record(self, cell: Cell) -> dict[str, Any]:
        """Write the row of a finished cell."""
        metrics = RunFolder(self.run_folder(cell)).metrics()
        recipe_hash = recipes.cell_recipe(self.shown, cell).hash()
        row = row_of(cell.data, metrics, recipe_hash, fewtags.__version__)
        self.rows = with_row(self.rows, row)
        self._write()
        return row

    def _write(self) -> None:
        write_results(self.folder, self.rows, METHOD_ORDER)

    def tidy(self, cell: Cell) -> None:
        """Keep the small files of a finished run."""
        for path in self.run_folder(cell).iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in KEPT:
                path.unlink()

    def forget_checkpoints(self, cell: Cell) -> None:
        """A run that failed by itself starts anew when it is tried again: its checkpoint may be the reason."""
        shutil.rmtree(self.run_folder(cell) / "checkpoints", ignore_errors=True)
