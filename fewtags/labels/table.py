"""The label table, and THE convention of the whole project: present +1, unknown 0, absent -1.

Unknown is not absent. It means that nobody looked, and it never teaches a model anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

PRESENT, UNKNOWN, ABSENT = 1, 0, -1
GIVEN = "given"
COMPLETED = "completed"
"""Sources of a label: a person who gave it, or `fewtags complete`."""
HUMAN = "human"
"""Answered by a person in `fewtags review`."""


@dataclass(frozen=True)
class LabelTable:
    """One row per image, one column per category."""

    images: tuple[str, ...]
    """What names an image; for files, the path relative to the data set's folder."""
    categories: tuple[str, ...]
    values: np.ndarray
    """(images, categories) int8 of PRESENT, UNKNOWN, ABSENT."""
    splits: tuple[str, ...]
    """Per image "train" or "test"."""
    confidence: np.ndarray | None = None
    """(images, categories) float32; NaN where given or unknown. None: nothing was completed."""
    source: np.ndarray | None = None
    """(images, categories) str: "given", "" if unknown, else what completed it. None: all given."""

    def __post_init__(self) -> None:
        shape = (len(self.images), len(self.categories))
        for name in ("values", "confidence", "source"):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} has shape {array.shape}, the table {shape}")
        if len(self.splits) != len(self.images):
            raise ValueError(f"{len(self.splits)} splits for {len(self.images)} images")
        if self.values.dtype != np.int8 or not np.isin(self.values, (PRESENT, UNKNOWN, ABSENT)).all():
            raise ValueError("values must be int8 of +1 (present), 0 (unknown), -1 (absent)")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def known(self) -> np.ndarray:
        return self.values != UNKNOWN

    def rows(self, indices: np.ndarray) -> LabelTable:
        """The same table restricted to these rows, in this order."""
        chosen = np.asarray(indices)
        return replace(
            self,
            images=tuple(self.images[i] for i in chosen),
            splits=tuple(self.splits[i] for i in chosen),
            values=self.values[chosen],
            confidence=None if self.confidence is None else self.confidence[chosen],
            source=None if self.source is None else self.source[chosen],
        )

    def split(self, name: str) -> LabelTable:
        return self.rows(np.flatnonzero(np.array(self.splits, dtype=object) == name))

    def without_completed(self) -> LabelTable:
        """The same with completed labels unknown again: what a model filled in must not judge a model."""
        if self.source is None:
            return self
        return self.with_values(np.where(self.source == COMPLETED, UNKNOWN, self.values))

    def with_values(self, values: np.ndarray) -> LabelTable:
        return replace(self, values=values.astype(np.int8))
