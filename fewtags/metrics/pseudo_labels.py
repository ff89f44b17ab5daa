"""How good filled labels are, when the truth behind the hidden ones is available.

Recall is to be read beside its ceiling: evidence from other labels of the same image exists only where an
image has a known present label, so most hidden labels are out of the intra-image module's reach when little
is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewtags.labels.table import PRESENT, UNKNOWN


@dataclass(frozen=True)
class PseudoLabelScore:
    made: int
    """Unknown entries that were filled as present."""
    judged: int
    """Of these, those whose truth is available."""
    right: int
    hidden_present: int
    """Unknown entries whose truth is present."""
    reachable: int
    """Of these, those in an image with a known present label."""

    @property
    def precision(self) -> float:
        """right / judged; NaN when nothing could be judged."""
        return _share(self.right, self.judged)

    @property
    def recall(self) -> float:
        """right / hidden_present; NaN when nothing present is hidden."""
        return _share(self.right, self.hidden_present)

    @property
    def ceiling(self) -> float:
        """The recall that evidence from known labels of the same image can reach at most."""
        return _share(self.reachable, self.hidden_present)

    def __add__(self, other: PseudoLabelScore) -> PseudoLabelScore:
        """Scores of disjoint images add up (batches of an epoch)."""
        return PseudoLabelScore(
            *(mine + theirs for mine, theirs in zip(self._counts(), other._counts(), strict=True))
        )

    def _counts(self) -> tuple[int, ...]:
        return self.made, self.judged, self.right, self.hidden_present, self.reachable


def score_pseudo_labels(known: np.ndarray, filled: np.ndarray, truth: np.ndarray) -> PseudoLabelScore:
    """Compare filled labels with the truth behind the hidden ones.

    known (n, C): the labels training may see, -1, 0, +1; filled (n, C): nonzero where a pseudo label
    stands; truth (n, C): -1, +1, and 0 where not even the truth is known. Entries that are known are never
    pseudo labels, whatever `filled` says.
    """
    unknown = known == UNKNOWN
    made = unknown & (filled > 0)
    hidden_present = unknown & (truth == PRESENT)
    return PseudoLabelScore(
        made=int(made.sum()),
        judged=int((made & (truth != UNKNOWN)).sum()),
        right=int((made & hidden_present).sum()),
        hidden_present=int(hidden_present.sum()),
        reachable=int((hidden_present & within_reach(known)).sum()),
    )


def within_reach(known: np.ndarray) -> np.ndarray:
    """(n, C) bool: entry (b, i) has a known present j ≠ i in its image."""
    present = known == PRESENT
    return present.sum(axis=1, keepdims=True) - present > 0


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
