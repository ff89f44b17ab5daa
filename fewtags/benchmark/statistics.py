"""Is one method ahead of another? Paired comparisons in blocks of (data, seed, known share).

Two methods in one block saw the same images and the same known labels, so their difference is the method's.
Blocks of one seed at several known shares are not independent: the labels known at 10 % are also known at 50 %
(see `fewtags.labels.hide`), and all blocks of one data set share its test images. Intervals and p-values treat
blocks as exchangeable, so they are somewhat too sure of themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats

FEWEST_BLOCKS = 9
MOST_BLOCKS_ENUMERATED = 16
RESAMPLES = 99_999
LEVEL = 0.05
NESTED = (
    "Blocks of one seed at several known shares are nested (what is known at 10 % is also known at 50 %) and "
    "share the test images, so they are not fully independent: intervals and p-values are somewhat too sure."
)


@dataclass(frozen=True)
class Comparison:
    first: str
    second: str
    blocks: int
    difference: float | None
    """Mean over the blocks of first - second; None without a block."""
    low: float | None
    high: float | None
    """The 95 % interval of the mean (Student's t); None with fewer than two blocks."""
    wins: int
    ties: int
    losses: int
    p: float | None
    """Two-sided, of the sign-flip test; None below `FEWEST_BLOCKS`."""
    adjusted: float | None = None
    """p after Holm's correction; see `holm`."""

    @property
    def decidable(self) -> bool:
        return self.p is not None

    @property
    def verdict(self) -> str:
        p = self.p if self.adjusted is None else self.adjusted
        if p is None or self.difference is None:
            return "not decidable"
        if p >= LEVEL:
            return "no difference shown"
        return "ahead" if self.difference > 0 else "behind"


def compare(
    results: pd.DataFrame, first: str, second: str, blocks: Sequence[str], metric: str = "mAP"
) -> Comparison:
    """first - second over the blocks that have both; `blocks` names the columns that tell them apart."""
    return comparison(first, second, paired_differences(results, first, second, blocks, metric).to_numpy())


def paired_differences(
    results: pd.DataFrame, first: str, second: str, blocks: Sequence[str], metric: str = "mAP"
) -> pd.Series:
    """first - second, indexed by block, where both were measured."""
    ours, theirs = (
        results.loc[results["method"] == method, [*blocks, metric]].set_index(list(blocks))[metric].dropna()
        for method in (first, second)
    )
    return (ours - theirs).dropna()


def comparison(first: str, second: str, differences: np.ndarray) -> Comparison:
    n = len(differences)
    low, high = mean_interval(differences)
    settled = np.where(np.abs(differences) < 1e-9, 0.0, differences)
    return Comparison(
        first=first,
        second=second,
        blocks=n,
        difference=float(differences.mean()) if n else None,
        low=low,
        high=high,
        wins=int((settled > 0).sum()),
        ties=int((settled == 0).sum()),
        losses=int((settled < 0).sum()),
        p=sign_flip_p(differences) if n >= FEWEST_BLOCKS else None,
    )


def mean_interval(differences: np.ndarray) -> tuple[float | None, float | None]:
    """mean ± t₀.₉₇₅(n-1) · s / √n."""
    n = len(differences)
    if n < 2:
        return None, None
    half = float(stats.t.ppf(0.975, n - 1)) * float(differences.std(ddof=1)) / n**0.5
    return float(differences.mean()) - half, float(differences.mean()) + half


def sign_flip_p(differences: np.ndarray) -> float:
    """Share of the 2ⁿ ways to flip the differences' signs whose |mean| is at least the observed one.

    If the methods are equal, which of the two came first in a block is a coin toss. All ways are counted up to
    n = 16; beyond, scipy draws 99,999 of them from a fixed seed (and counts the observed one too).
    """
    if len(differences) == 0 or not np.any(differences):
        return 1.0
    if len(differences) <= MOST_BLOCKS_ENUMERATED:
        return _enumerated_p(differences)
    return _drawn_p(differences)


def _enumerated_p(differences: np.ndarray) -> float:
    n = len(differences)
    flipped = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    sums = np.abs((1 - 2 * flipped) @ differences)  # (2ⁿ,)
    slack = 1e-9 * np.abs(differences).sum()  # the observed sum must count as reaching itself
    return float((sums >= abs(differences.sum()) - slack).mean())


def _drawn_p(differences: np.ndarray) -> float:
    result = stats.permutation_test(
        (differences, np.zeros_like(differences)),
        lambda first, second, axis: (first - second).mean(axis=axis),
        permutation_type="samples",
        n_resamples=RESAMPLES,
        batch=1000,
        random_state=np.random.default_rng(0),
    )
    return float(result.pvalue)


def holm(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same comparisons with `adjusted` set: p₍ᵢ₎ · (m - i), made monotone, at most 1.

    The family is the comparisons that have a p-value.
    """
    adjusted = iter(holm_adjusted([c.p for c in comparisons if c.p is not None]))
    return [c if c.p is None else replace(c, adjusted=next(adjusted)) for c in comparisons]


def holm_adjusted(values: Sequence[float]) -> list[float]:
    """p-values of one family → the same after Holm's correction, in their order."""
    adjusted, highest = [1.0] * len(values), 0.0
    for rank, (p, index) in enumerate(sorted((p, index) for index, p in enumerate(values))):
        highest = max(highest, min(1.0, p * (len(values) - rank)))
        adjusted[index] = highest
    return adjusted


def smallest_adjusted(comparisons: Sequence[Comparison]) -> float | None:
    """The least that Holm's p could be here, one method ahead in every block; None when none is decidable."""
    blocks = [c.blocks for c in comparisons if c.decidable]
    if not blocks:
        return None
    fewest = min(2.0 ** (1 - n) if n <= MOST_BLOCKS_ENUMERATED else 2 / (RESAMPLES + 1) for n in blocks)
    return min(1.0, fewest * len(blocks))
