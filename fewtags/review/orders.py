"""Which suggestion is asked first. Each order is a permutation of the rows, best first; ties go by row."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, get_args

import numpy as np

Order = Literal["value", "uncertain", "confident", "random"]
ORDERS: tuple[str, ...] = get_args(Order)
RANDOM_SEED = 0


def order_rows(order: str, probability: np.ndarray, category: np.ndarray, known_present: np.ndarray) -> np.ndarray:
    """(N,) probabilities and categories, (C,) known present labels → (N,) int32 rows in the order asked."""
    if order == "random":
        return np.random.default_rng(RANDOM_SEED).permutation(len(probability)).astype(np.int32)
    worth = {
        "uncertain": lambda: -certainty(probability),
        "confident": lambda: certainty(probability),
        "value": lambda: value(probability, category, known_present),
    }[order]()
    return np.argsort(-worth, kind="stable").astype(np.int32)


def certainty(probability: np.ndarray) -> np.ndarray:
    """|p - ½|: 0 is a toss-up."""
    return np.abs(probability - np.float32(0.5))


def entropy(probability: np.ndarray) -> np.ndarray:
    """-p log₂ p - (1-p) log₂ (1-p): the bits that the answer carries."""
    p = np.clip(probability, 1e-7, 1 - 1e-7).astype(np.float32)
    return -(p * np.log2(p) + (1 - p) * np.log2(1 - p))


def value(probability: np.ndarray, category: np.ndarray, known_present: np.ndarray) -> np.ndarray:
    """What the answer teaches: entropy(p) / √(1 + n_c + r).

    n_c present labels of the category are known already, and r of its suggestions are asked before this one: an
    answer teaches more about a category of which little is known, and the hundredth alike less than the first.
    """
    bits = entropy(probability)
    asked_before = rank_in_category(bits, category)
    return bits / np.sqrt(1 + known_present[category].astype(np.float32) + asked_before)


def rank_in_category(worth: np.ndarray, category: np.ndarray) -> np.ndarray:
    """(N,) → (N,): how many rows of the same category are worth more (or as much, and come earlier)."""
    grouped = np.lexsort((-worth, category))
    starts = np.searchsorted(category[grouped], np.arange(int(category.max(initial=-1)) + 1))
    ranks = np.empty(len(worth), dtype=np.float32)
    for start, stop in pairwise([*starts, len(worth)]):  # one category at a time: little memory
        ranks[grouped[start:stop]] = np.arange(stop - start)
    return ranks
