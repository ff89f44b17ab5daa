"""Complete labels, which answer the questions, and what of them is known at a time.

Training and completing get a table that holds start labels and answers alone: a label that nobody asked for is not
hidden from them, it is not there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from fewtags.data import Data, open_for
from fewtags.errors import UserError
from fewtags.labels.hide import hide
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import COMPLETED, GIVEN, HUMAN, PRESENT, UNKNOWN, LabelTable
from fewtags.recipe import Recipe
from fewtags.training.prepare import limited


@dataclass(frozen=True)
class Known:
    """(n, C): what is known of the training labels, and which of it was asked for."""

    values: np.ndarray
    asked: np.ndarray
    """bool"""

    @property
    def share(self) -> float:
        return float((self.values != UNKNOWN).mean())

    @property
    def answers(self) -> int:
        return int(self.asked.sum())

    @property
    def presents_found(self) -> int:
        return int((self.values[self.asked] == PRESENT).sum())


class Truth:
    def __init__(self, data: Data, train: LabelTable):
        self.data, self.train, self.test = data, train, data.table.split(TEST)

    @property
    def entries(self) -> int:
        return self.train.values.size

    def start(self, share: float, seed: int) -> Known:
        """The labels that `fewtags train --known` would keep."""
        values = hide(self.train.values, share, seed)
        return Known(values, np.zeros(values.shape, bool))

    def all(self) -> Known:
        return Known(self.train.values, np.zeros(self.train.values.shape, bool))

    def answer(self, known: Known, rows: np.ndarray, categories: np.ndarray) -> Known:
        """The same with these entries answered. The only place where hidden labels become known."""
        values, asked = known.values.copy(), known.asked.copy()
        values[rows, categories] = self.train.values[rows, categories]
        asked[rows, categories] = True
        return Known(values, asked)

    def to_complete(self, known: Known) -> Data:
        """The training images with what is known of them; answers have the source `human`."""
        source = np.where(known.values == UNKNOWN, "", np.where(known.asked, HUMAN, GIVEN)).astype(object)
        table = replace(self.train, values=known.values, source=source, confidence=None)
        return replace(self.data, table=table, complete_truth=False)

    def to_train(self, known: Known) -> Data:
        """The same and the test images, which are scored."""
        return replace(self.to_complete(known), table=_joined(self.to_complete(known).table, self.test))

    def fingerprint(self) -> str:
        """Short name of the labels that answer: a simulation goes on only with the same ones."""
        found = hashlib.sha256(repr((self.train.images, self.train.categories)).encode())
        found.update(np.ascontiguousarray(self.train.values).tobytes())
        return found.hexdigest()[:12]


def _joined(train: LabelTable, test: LabelTable) -> LabelTable:
    assert train.source is not None
    given = np.where(test.known, GIVEN, "").astype(object)
    return LabelTable(
        images=train.images + test.images,
        categories=train.categories,
        values=np.concatenate([train.values, test.values]),
        splits=train.splits + test.splits,
        source=np.concatenate([train.source, given]),
    )


def open_truth(spec: str, recipe: Recipe, tokens: str | None = None) -> Truth:
    """DATA with every training label known."""
    data = open_for(recipe, spec, tokens)
    train = limited(data.table.split(TRAIN), recipe.limit, recipe.development)
    if not len(train):
        raise UserError(f"{spec}: there are no training images; mark some rows with split `train`")
    _check_complete(spec, train)
    return Truth(data, train)


def _check_complete(spec: str, train: LabelTable) -> None:
    missing = train.values == UNKNOWN
    guessed = np.zeros_like(missing) if train.source is None else train.source == COMPLETED
    for which, text in ((missing, "unknown"), (guessed, "filled in by `fewtags complete`, which is no truth")):
        if which.any():
            row, column = np.argwhere(which)[0]
            raise UserError(
                f"{spec}: {int(which.sum()):,} of {which.size:,} training labels are {text} (the first: "
                f"{train.images[row]}, {train.categories[column]}). A simulation answers its questions from the "
                "truth, so every training label has to be given"
            )
