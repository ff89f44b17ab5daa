"""`hide`, `held_out` and folds for sparse labels: the same draws as for a dense table, a block of rows at a time.

Every entry's number depends on the seed and its place in the table alone, as in `hide`; a generator that is asked
for (n, C) numbers gives the same ones when it is asked block by block.
"""

from __future__ import annotations

import numpy as np

from fewtags.labels.hide import HIDE_STREAM, HOLD_OUT_STREAM, checked_share, generator
from fewtags.labels.sparse import ROWS_AT_ONCE, PackedBits, SparseLabels


def hide_sparse(labels: SparseLabels, known: float, seed: int) -> SparseLabels:
    """Entries with u < known."""
    share = checked_share(known, "known")
    return labels if share == 1 else labels.kept(_drawn(labels, seed, HIDE_STREAM) < share)


def hold_out_sparse(labels: SparseLabels, share: float, seed: int) -> tuple[SparseLabels, SparseLabels]:
    """(what is left, what is held out)."""
    held = _drawn(labels, seed, HOLD_OUT_STREAM) < checked_share(share, "holdout")
    return labels.kept(~held), labels.kept(held)


def _drawn(labels: SparseLabels, seed: int, stream: int) -> np.ndarray:
    """(entries,): the number u of each known entry."""
    source, drawn = generator(seed, stream), np.empty(len(labels.category))
    for rows, place in labels.blocks():
        numbers = source.random((len(rows), labels.categories))
        drawn[place] = numbers[labels.row_of_entries(rows), labels.category[place]]
    return drawn


def packed_folds(shape: tuple[int, int], seed: int) -> PackedBits:
    """`random_folds`, packed."""
    source = np.random.default_rng([seed, 29])
    parts = [
        np.packbits(source.integers(0, 2, (min(ROWS_AT_ONCE, shape[0] - first), shape[1]), dtype=np.int8), axis=1)
        for first in range(0, shape[0], ROWS_AT_ONCE)
    ]
    return PackedBits(np.concatenate(parts), shape[1])
