"""Rows of suggestions: each unknown entry with its probability, the decision, and the reasons as JSON."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import expit

from fewtags.completion.calibration import Line
from fewtags.completion.kept import Gallery
from fewtags.completion.suggestions import ABSENT, PRESENT, SCHEMA, UNKNOWN
from fewtags.completion.walk import Walked

MOST_WITNESSES = 5
ROWS_AT_ONCE = 100_000
NO_REASON = "[]"
WORDS = np.array([ABSENT, UNKNOWN, PRESENT], dtype=object)  # of -1, 0, +1


@dataclass(frozen=True)
class Decided:
    """N unknown entries, ordered by image, and what was decided."""

    row: np.ndarray
    category: np.ndarray
    logit: np.ndarray
    """Calibrated."""
    values: np.ndarray
    origin: np.ndarray

    def part(self, chosen: slice | np.ndarray) -> Decided:
        columns = (self.row, self.category, self.logit, self.values, self.origin)
        return Decided(*(column[chosen] for column in columns))

    def __len__(self) -> int:
        return len(self.row)


class Reasons:
    """Turns entries into rows, with names for numbers."""

    def __init__(
        self,
        images: Sequence[str],
        categories: Sequence[str],
        walked: Walked,
        gallery: Gallery | None,
        line: Line,
    ):
        self.images, self.categories = np.array(images, dtype=object), np.array(categories, dtype=object)
        self.quoted = [json.dumps(name, ensure_ascii=False) for name in categories]
        self.walked, self.line = walked, line
        self.gallery = None if gallery is None else _quoted(gallery.images)

    def tables(self, decided: Decided) -> Iterator[pa.Table]:
        """Parts of the suggestions, so that a long file never is in memory as a whole."""
        for start in range(0, len(decided), ROWS_AT_ONCE):
            yield self.table(decided.part(slice(start, start + ROWS_AT_ONCE)))

    def table(self, decided: Decided) -> pa.Table:
        place = decided.row, decided.category
        intra, cross = self.walked.intra[place], self.walked.cross[place]
        columns = {
            "image": self.images[decided.row],
            "category": self.categories[decided.category],
            "probability": expit(decided.logit).astype(np.float32),
            "decision": WORDS[decided.values.astype(int) + 1],
            "origin": decided.origin,
            "score": expit(self.walked.logits[place]).astype(np.float32),
            "intra": pa.array(self.line(intra).astype(np.float32), pa.float32(), mask=np.isnan(intra)),
            "intra_because": self._witnesses(decided),
            "cross": pa.array(cross, pa.float32(), mask=np.isnan(cross)),
            "cross_because": self._neighbours(decided),
        }
        return pa.table(columns, schema=SCHEMA)

    def _witnesses(self, decided: Decided) -> list[str]:
        """`[{"category": "keyboard", "p": 0.93}, …]`, strongest first."""
        texts: list[str] = []
        for row, asked in _by_image(decided.row, decided.category):
            if row not in self.walked.witnesses:
                texts += [NO_REASON] * len(asked)
                continue
            given, said = self.walked.witnesses[row]
            believed = self.line(said[:, asked].astype(np.float32)).T  # (asked, given)
            order = np.argsort(-believed, axis=1, kind="stable")
            texts += [self._said(given, asked[i], believed[i], order[i]) for i in range(len(asked))]
        return texts

    def _said(self, given: np.ndarray, asked: int, believed: np.ndarray, order: np.ndarray) -> str:
        kept = [j for j in order if given[j] != asked][:MOST_WITNESSES]
        items = (f'{{"category": {self.quoted[given[j]]}, "p": {believed[j]:.3f}}}' for j in kept)
        return "[" + ", ".join(items) + "]"

    def _neighbours(self, decided: Decided) -> list[str]:
        """`[{"image": "images/000123.jpg", "similarity": 0.81}, …]`, most similar first."""
        if self.gallery is None or self.walked.places is None or self.walked.cosines is None:
            return [NO_REASON] * len(decided)
        places = self.walked.places[decided.row, decided.category]
        cosines = self.walked.cosines[decided.row, decided.category]
        names = self.gallery[decided.category[:, None], places]
        return [
            "[" + ", ".join(_alike(n, c) for n, c, p in zip(*entry, strict=True) if p >= 0) + "]"
            for entry in zip(names, cosines, places, strict=True)
        ]


def _alike(name: str, cosine: float) -> str:
    return f'{{"image": {name}, "similarity": {cosine:.3f}}}'


def _quoted(names: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda name: json.dumps(name, ensure_ascii=False), otypes=[object])(names)


def _by_image(row: np.ndarray, category: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(row, categories) of each run of entries of one image."""
    if len(row):
        starts = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1, [len(row)]])
        for start, end in itertools.pairwise(starts):
            yield int(row[start]), category[start:end]
