"""From a score and evidence to a probability that can be believed, fitted on labels held out of training.

    logit P(present) = b + o_c + a₊·softplus(z) - a₋·softplus(-z) + w_r·rate_c
                       + (1 - σ(z))·(w_i·intra + w_x·cross) + σ(z)·(v_i·intra + v_x·cross)

z is the classifier's logit; where a plain classifier learned beside it, from known labels alone, the mean of the
two: the network has been told labels that were filled in, wrong ones among them, of the very entries asked about.
With a₊ = a₋ = 1 and all else 0 the two softplus terms are z itself. That is where the fit is drawn to when labels
are few (a Gaussian prior); the offsets o_c of the categories are drawn to 0.
Evidence has one weight where the score says no and one where it says yes: fitted on the many entries of the first
kind, a single one would spoil the order of the few that are filled as present.
Evidence that is missing counts as average evidence. Weights of score and evidence are never negative.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

FOLDS = 10
MOST_ENTRIES = 200_000
"""A larger number of held-out entries is thinned before fitting; it would change nothing but the time."""
SMALLEST = 1e-4
"""Evidence is kept this far from 0 and 1, so that its logit is finite."""
TERMS = ("bias", "above", "below", "intra if no", "intra if yes", "cross if no", "cross if yes", "rate")
AIM = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
SPREAD = np.array([1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25])
"""How far each weight is believed to be from AIM, as a standard deviation."""
OFFSET_SPREAD = 0.5
INTRA, CROSS = slice(3, 5), slice(5, 7)
"""Where TERMS has each kind of evidence."""


@dataclass(frozen=True)
class Entries:
    """M entries: category (M,), the classifier's logit (M,), evidence (M,), NaN where there is none."""

    category: np.ndarray
    logit: np.ndarray
    plain: np.ndarray
    """The logit of the linear layer that learned from known labels alone; NaN: there is none."""
    intra: np.ndarray
    cross: np.ndarray

    def __len__(self) -> int:
        return len(self.category)

    def rows(self, chosen: np.ndarray) -> Entries:
        return Entries(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @property
    def score(self) -> np.ndarray:
        """(M,) float64: what is calibrated."""
        own = self.logit.astype(np.float64)
        return np.where(np.isnan(self.plain), own, (own + self.plain) / 2)

    def score_alone(self) -> Entries:
        """One score and no evidence: the plain classifier through the same calibration."""
        nothing = np.full(len(self), np.nan, np.float32)
        score = np.where(np.isnan(self.plain), self.logit, self.plain)
        return Entries(self.category, score, nothing, nothing, nothing)


@dataclass(frozen=True)
class Scale:
    """What puts evidence of all categories on one scale; from unlabelled entries and training labels alone."""

    rate: np.ndarray
    """(C,) share of the known training labels that are present, smoothed."""
    cross_mean: np.ndarray
    cross_spread: np.ndarray
    """(C,) of the likeness to a category's known images."""
    intra_mean: float
    """Mean logit of the evidence within images."""


@dataclass(frozen=True)
class Calibrator:
    weights: np.ndarray
    """In the order of TERMS."""
    offsets: np.ndarray
    """(C,)"""

    def logits(self, terms: np.ndarray, category: np.ndarray) -> np.ndarray:
        """Terms (M, TERMS), category (M,) → (M,)."""
        return terms @ self.weights + self.offsets[category]


def terms_of(entries: Entries, scale: Scale) -> np.ndarray:
    """(M, TERMS) float32: what the weights are multiplied with."""
    z = entries.score
    intra = logit(np.clip(entries.intra, SMALLEST, 1 - SMALLEST)) - scale.intra_mean
    cross = (entries.cross - scale.cross_mean[entries.category]) / scale.cross_spread[entries.category]
    rate, no, yes = logit(np.clip(scale.rate, SMALLEST, 1 - SMALLEST)), expit(-z), expit(z)
    columns = (
        np.ones_like(z),
        np.logaddexp(0, z),
        -np.logaddexp(0, -z),
        no * np.nan_to_num(intra, nan=0.0),
        yes * np.nan_to_num(intra, nan=0.0),
        no * np.nan_to_num(cross, nan=0.0),
        yes * np.nan_to_num(cross, nan=0.0),
        (rate - rate.mean())[entries.category],
    )
    return np.stack(columns, axis=1).astype(np.float32)


def scale_of(present: np.ndarray, known: np.ndarray, intra: np.ndarray, cross: np.ndarray) -> Scale:
    """Counts (C,) of known present and known training labels, evidence (n, C) with NaN → the scale.

    The rate of a category is drawn to that of all by one label's worth.
    """
    overall = (present.sum() + 1) / (known.sum() + 2)
    there = ~np.isnan(cross)
    count = np.maximum(there.sum(0), 1)
    mean = np.where(there, cross, 0).sum(0) / count
    spread = np.sqrt(np.where(there, (cross - mean) ** 2, 0).sum(0) / count)
    found = intra[~np.isnan(intra)]
    middle = float(logit(np.clip(found, SMALLEST, 1 - SMALLEST)).mean()) if len(found) else 0.0
    return Scale((present + overall) / (known + 1), mean, np.where(spread > 1e-6, spread, 1.0), middle)


def fit(terms: np.ndarray, category: np.ndarray, present: np.ndarray, categories: int) -> Calibrator:
    """Terms (M, TERMS), category (M,), present (M,) bool → the most probable weights and offsets."""
    terms, category, present = _thinned(terms, category, present)
    sign = np.where(present, -1.0, 1.0)
    spread = np.concatenate([SPREAD, np.full(categories, OFFSET_SPREAD)])
    aim = np.concatenate([AIM, np.zeros(categories)])

    def surprise(values: np.ndarray) -> tuple[float, np.ndarray]:
        weights, offsets = values[: len(TERMS)], values[len(TERMS) :]
        wrongness = sign * (terms @ weights + offsets[category])
        pull = sign * expit(wrongness)
        distance = (values - aim) / spread
        gradient = np.concatenate([pull @ terms, np.bincount(category, pull, categories)]) + distance / spread
        return float(np.logaddexp(0, wrongness).sum() + 0.5 * (distance**2).sum()), gradient

    free, not_negative = (None, None), (0.0, None)
    bounds = [free, *([not_negative] * 6), free, *([free] * categories)]
    found = minimize(surprise, aim, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibrator(found[: len(TERMS)], found[len(TERMS) :])


def _thinned(*columns: np.ndarray) -> tuple[np.ndarray, ...]:
    if len(columns[0]) <= MOST_ENTRIES:
        return columns
    chosen = np.random.default_rng(0).permutation(len(columns[0]))[:MOST_ENTRIES]
    return tuple(column[chosen] for column in columns)


def fit_folds(
    terms: np.ndarray, category: np.ndarray, present: np.ndarray, folds: np.ndarray, categories: int
) -> list[Calibrator]:
    """One calibrator per fold, taught by the entries of all other folds."""
    others = [folds != fold for fold in range(FOLDS)]
    return [fit(terms[kept], category[kept], present[kept], categories) for kept in others]


def crossfitted(
    calibrators: list[Calibrator], terms: np.ndarray, category: np.ndarray, folds: np.ndarray
) -> np.ndarray:
    """(M,) logits, each by the calibrator of the entry's fold: one that no label of that fold has taught."""
    found = np.empty(len(terms))
    for fold, calibrator in enumerate(calibrators):
        own = folds == fold
        found[own] = calibrator.logits(terms[own], category[own])
    return found


@dataclass(frozen=True)
class Line:
    """probability = σ(slope · logit(value) + shift), for evidence shown on its own."""

    slope: float
    shift: float

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return expit(self.slope * logit(np.clip(values, SMALLEST, 1 - SMALLEST)) + self.shift)


def fit_line(values: np.ndarray, present: np.ndarray) -> Line:
    """Evidence (M,) in [0, 1] and what was true (M,) → its calibration; with no entries, the evidence itself."""
    x = logit(np.clip(values, SMALLEST, 1 - SMALLEST))
    sign = np.where(present, -1.0, 1.0)

    def surprise(line: np.ndarray) -> tuple[float, np.ndarray]:
        wrongness = sign * (line[0] * x + line[1])
        pull = sign * expit(wrongness)
        distance = line - np.array([1.0, 0.0])
        return float(np.logaddexp(0, wrongness).sum() + 0.5 * (distance**2).sum()), np.array(
            [pull @ x, pull.sum()]
        ) + distance

    found = minimize(surprise, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(0, None), (None, None)])
    return Line(*map(float, found.x))


@dataclass(frozen=True)
class Reliability:
    """Per bin of predicted probability: its mean, the share that was present, how many; and the ECE over bins."""

    predicted: list[float]
    present: list[float]
    count: list[int]
    ece: float


def reliability(probabilities: np.ndarray, present: np.ndarray, bins: int = 15) -> Reliability:
    """ECE = Σ_bins (count / M) · |mean probability - share present|, bins of equal width in [0, 1]."""
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    filled = np.flatnonzero(count)
    mean = np.bincount(place, probabilities, bins)[filled] / count[filled]
    share = np.bincount(place, present.astype(float), bins)[filled] / count[filled]
    total = max(len(probabilities), 1)
    ece = float((count[filled] / total * np.abs(mean - share)).sum())
    return Reliability(mean.tolist(), share.tolist(), count[filled].tolist(), ece)
