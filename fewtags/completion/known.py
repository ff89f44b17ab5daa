"""What completing may know of DATA, and which entries it is to fill."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fewtags.completion.kept import HeldOut
from fewtags.errors import UserError
from fewtags.evaluation import aligned
from fewtags.labels.hide import hide
from fewtags.labels.table import PRESENT, UNKNOWN, LabelTable
from fewtags.predict import Tagger
from fewtags.recipe import Recipe
from fewtags.training.prepare import limited


@dataclass(frozen=True)
class Known:
    """Of n images and the model's C categories."""

    labels: np.ndarray
    """(n, C) int8: known labels that evidence may rest on: not those held out of training."""
    to_fill: np.ndarray
    """(n, C) bool: entries to fill."""
    hidden: np.ndarray
    """(n, C) bool: labels that the run's `known` hid, and that are therefore unknown here too."""
    trained: np.ndarray
    """Rows of the images that the run was trained on, in its order; none if DATA is other data."""

    @property
    def at_random(self) -> bool:
        """Whether all that is to be filled was hidden by a coin: then the promise rests on no assumption."""
        return bool(self.hidden.any() and (self.hidden | ~self.to_fill).all())


def what_is_known(
    table: LabelTable, spec: str, tagger: Tagger, held: HeldOut, *, use_hidden: bool = False
) -> Known:
    """`use_hidden`: take labels that the run's `known` hid as known after all."""
    values = aligned(table, tagger.categories, spec).values
    hidden, trained = np.zeros(values.shape, bool), np.zeros(0, np.int64)
    if same_data(spec, tagger.labels.data):
        trained = _trained_rows(table, tagger.recipe)
        if tagger.recipe.known < 1 and not use_hidden:
            hidden[trained] = (hide(values[trained], tagger.recipe.known, tagger.recipe.seed) == 0) & (
                values[trained] != UNKNOWN
            )
        _check_unchanged(np.where(hidden, UNKNOWN, values), table, held, spec, bool(hidden.any()))
    visible = np.where(hidden, UNKNOWN, values).astype(np.int8)
    asked = np.isin(np.array(tagger.categories, dtype=object), np.array(table.categories, dtype=object))
    return Known(_without(visible, table, held, trained), (visible == UNKNOWN) & asked, hidden, trained)


def same_data(spec: str, trained_on: str) -> bool:
    """Whether DATA is what the run was trained on, by its name or as the same folder."""
    if spec == trained_on:
        return True
    one, two = Path(spec), Path(trained_on)
    return one.exists() and two.exists() and one.resolve() == two.resolve()


def _trained_rows(table: LabelTable, recipe: Recipe) -> np.ndarray:
    """As in training: the rows of split `train` that are not set aside, or those of them that `limit` keeps."""
    place = {image: row for row, image in enumerate(table.images)}
    kept = limited(table.split("train"), recipe.limit, recipe.development)
    return np.array([place[image] for image in kept.images], dtype=np.int64)


def _held_rows(table: LabelTable, held: HeldOut) -> np.ndarray:
    """(M,) the row of each held-out label, -1 if its image is not in the data any more."""
    place = {image: row for row, image in enumerate(table.images)}
    return np.array([place.get(image, -1) for image in held.image], dtype=np.int64)


def _check_unchanged(visible: np.ndarray, table: LabelTable, held: HeldOut, spec: str, hiding: bool) -> None:
    """Hiding goes by an entry's place: after rows were added or removed, other labels would be hidden."""
    if not hiding or not len(held.image):
        return
    rows = _held_rows(table, held)
    found = visible[rows, held.entries.category] * (rows >= 0)
    if (found != np.where(held.present, PRESENT, -PRESENT)).any():
        raise UserError(
            f"{spec}: its labels have changed since the run was trained, so those hidden by `known` cannot be "
            "told from the others; complete the data as it was, or add --use-hidden to take all labels as known"
        )


def _without(visible: np.ndarray, table: LabelTable, held: HeldOut, trained: np.ndarray) -> np.ndarray:
    """Known labels less those held out of training."""
    if not len(trained) or not len(held.image):
        return visible
    labels, rows = visible.copy(), _held_rows(table, held)
    labels[rows[rows >= 0], held.entries.category[rows >= 0]] = UNKNOWN
    return labels
