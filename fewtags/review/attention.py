"""Where the model looked for a category: a small grid, computed when asked for. Some methods have none."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fewtags.errors import UserError
from fewtags.images.loading import ImageSource

if TYPE_CHECKING:
    from fewtags.predict import Tagger

IMAGES_KEPT = 128


class NoAttentionError(Exception):
    """There is no map to show, and why."""


class AttentionMaps:
    """The model is loaded at the first use and runs one image at a time."""

    def __init__(self, run: Path, source: ImageSource, images: Sequence[str], categories: Sequence[str]):
        self.run, self.source, self.images, self.categories = run, source, images, categories
        self._tagger: Tagger | None = None
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def grid(self, image: int, category: int) -> list[list[float]]:
        """H rows of W numbers from 0 to 1."""
        with self._lock:
            maps = self._maps(image)
            place = self._place(self.categories[category])
        return scaled(maps[place].astype(np.float32)).round(3).tolist()

    def warm_up(self) -> None:
        """Load the model ahead of the first question; what is wrong with it is told when a map is asked for."""
        try:
            with self._lock:
                self._loaded()
        except (NoAttentionError, UserError):
            return

    def _maps(self, image: int) -> np.ndarray:
        """(C, H, W) of one image, kept for its other categories."""
        if image not in self._kept:
            tagger = self._loaded()
            (outputs,) = tagger.outputs([self.source.open(self.images[image])])
            if "attention" not in outputs:
                raise NoAttentionError(f"{tagger.recipe.method} has no attention maps")
            self._kept[image] = outputs["attention"][0].cpu().numpy().astype(np.float16)
            while len(self._kept) > IMAGES_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(image)
        return self._kept[image]

    def _loaded(self) -> Tagger:
        if self._tagger is None:
            from fewtags.predict import load

            self._tagger = load(self.run)
        return self._tagger

    def _place(self, category: str) -> int:
        categories = self._loaded().categories
        if category not in categories:
            raise NoAttentionError(f"the run does not know the category {category!r}")
        return categories.index(category)


def scaled(values: np.ndarray) -> np.ndarray:
    """To [0, 1]; a flat map is 0 everywhere."""
    values = np.nan_to_num(values)
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)
