"""What a sweep costs: from rows that are there already, else from a few measured training steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from fewtags.benchmark.cells import Cell
from fewtags.benchmark.pool import Pool
from fewtags.benchmark.recipes import cell_recipe
from fewtags.data import Data, open_data
from fewtags.recipe import Recipe

FORWARD_SHARE = 1 / 3
"""Scoring an image costs about a third of training on it."""


@dataclass(frozen=True)
class Size:
    images: int
    test_images: int
    categories: int


def sizes(cells: Iterable[Cell], recipe: Recipe, tokens: str | None) -> dict[str, Size]:
    """By the short name of each cell's data, which are opened for it: a mistake in them shows early."""
    specs = {cell.data: cell.spec for cell in cells}
    return {name: size_of(open_data(spec, tokens=tokens), recipe) for name, spec in specs.items()}


def size_of(data: Data, recipe: Recipe) -> Size:
    train, test = data.table.split("train"), data.table.split("test")
    return Size(min(len(train), recipe.limit or len(train)), len(test), len(data.table.categories))


@dataclass
class Costs:
    """Seconds that cells take."""

    base: Recipe
    sizes: dict[str, Size]
    """By the data's short name."""
    rates: dict[tuple[str, str], float] = field(default_factory=dict)
    """(data, method) → seconds per image and epoch of its rows, evaluation included."""
    measured: dict[tuple[str, str], float] = field(default_factory=dict)
    """(data, method without variant) → the same by measurement."""

    def learn(self, rows: pd.DataFrame) -> None:
        rates = rows["seconds"] / (rows["images"] * rows["epochs"])
        table = rows.assign(rate=rates.astype(float)).groupby(["data", "method"], as_index=False)["rate"].median()
        self.rates = {(row.data, row.method): row.rate for row in table.itertuples()}

    def measure(self, cells: Iterable[Cell], pool: Pool) -> None:
        """Time some steps of each method that has no rows; a variant costs what its method costs."""
        for cell in cells:
            place = (cell.data, _method(cell))
            if self.rate(cell) is None:
                recipe = cell_recipe(self.base, cell).model_dump(mode="json")
                step = pool.call("measure_step", recipe=recipe, categories=self.sizes[cell.data].categories)
                self.measured[place] = step + self._evaluation(cell, step)

    def _evaluation(self, cell: Cell, step: float) -> float:
        size = self.sizes[cell.data]
        return FORWARD_SHARE * step * size.test_images / (size.images * self.base.epochs)

    def rate(self, cell: Cell) -> float | None:
        """Seconds per image and epoch: of the cell's own rows, its method's, or measured."""
        own, method = (cell.data, cell.method), (cell.data, _method(cell))
        return self.rates.get(own) or self.rates.get(method) or self.measured.get(method)

    def seconds(self, cell: Cell) -> float | None:
        rate = self.rate(cell)
        return None if rate is None else rate * self.sizes[cell.data].images * self.base.epochs

    def total(self, cells: Iterable[Cell]) -> float | None:
        """Of all cells one after another; None while nothing is known of one of them."""
        known = [self.seconds(cell) for cell in cells]
        return None if None in known else sum(second for second in known if second is not None)


def _method(cell: Cell) -> str:
    return cell.method.partition(".")[0]


@dataclass(frozen=True)
class CacheCost:
    gigabytes: float
    seconds: float


def cache_cost(base: Recipe, sizes: Iterable[Size], pool: Pool, threads: int) -> CacheCost | None:
    """Of the features of all data; None where the backbone is trained on images, for nothing is cached then."""
    if not base.caches:
        return None
    view = pool.call("measure_features", recipe=base.model_dump(mode="json"), threads=threads)
    views = sum(size.images * len(base.views) + size.test_images for size in sizes)
    return CacheCost(views * view["bytes"] / 1e9, views * view["seconds"])
