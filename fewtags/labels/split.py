"""The split of a data set that brings none."""

from __future__ import annotations

import numpy as np

from fewtags.errors import UserError

TRAIN, TEST = "train", "test"
SPLIT_STREAM = 3
TRAIN_SHARE = 0.8


def seeded_split(count: int, seed: int) -> tuple[str, ...]:
    """`count` images → "train" for round(0.8 · count) of them, drawn by the seed, "test" for the others."""
    if seed < 0:
        raise UserError(f"seed={seed}: a seed is 0 or more")
    order = np.random.default_rng((SPLIT_STREAM, seed)).permutation(count)
    splits = np.full(count, TEST, dtype=object)
    splits[order[: round(TRAIN_SHARE * count)]] = TRAIN
    return tuple(splits)
