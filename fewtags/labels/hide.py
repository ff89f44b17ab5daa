"""Hiding labels (SPEC 7): pretend that only a share of the given labels is known.

Every entry has one seeded number u in [0, 1) that depends on nothing but the seed and the entry's place in
the table. Because no draw depends on the labels, a hidden label cannot leak through what was hidden.
"""

from __future__ import annotations

import numpy as np

from fewtags.errors import UserError
from fewtags.labels.table import UNKNOWN

HIDE_STREAM, HOLD_OUT_STREAM = 1, 2  # two independent draws from one seed


def hide(values: np.ndarray, known: float, seed: int) -> np.ndarray:
    """(n, C) int8 → (n, C) int8: `values` where u < known, unknown elsewhere.

    u is drawn once per entry, so the sets kept by one seed are nested: what is known at 0.1 is known at 0.2.
    """
    kept = _draw(values.shape, seed, HIDE_STREAM) < checked_share(known, "known")
    return np.where(kept, values, UNKNOWN).astype(np.int8)


def held_out(values: np.ndarray, share: float, seed: int) -> np.ndarray:
    """(n, C) → (n, C) bool: the known entries with v < share, v independent of the u of `hide`."""
    drawn = _draw(values.shape, seed, HOLD_OUT_STREAM) < checked_share(share, "holdout")
    return drawn & (values != UNKNOWN)


def _draw(shape: tuple[int, ...], seed: int, stream: int) -> np.ndarray:
    return generator(seed, stream).random(shape)


def generator(seed: int, stream: int) -> np.random.Generator:
    if seed < 0:
        raise UserError(f"seed={seed}: a seed is 0 or more")
    return np.random.default_rng((stream, seed))


def checked_share(share: float, name: str) -> float:
    if not 0 <= share <= 1:
        raise UserError(f"{name}={share}: a share is between 0 and 1")
    return share
