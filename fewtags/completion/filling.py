"""From scores and evidence to decisions: which unknown entries are present, absent, or left to a person.

Numbers in, numbers out: no files and no model, so that the promise can be tried on made-up ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from fewtags.completion.calibration import CROSS, FOLDS, INTRA, Entries, Scale, crossfitted, fit_folds, terms_of
from fewtags.completion.precision import Certificate, Side, certificates
from fewtags.completion.prior import Shift, no_shift
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN

PLAIN_LEVEL = 0.95
"""Without held-out labels: entries at least this sure are filled, and nothing is promised."""
ROUNDING = 1e-6
"""A probability taken to a logit and back is off by this at most, where it matters."""


@dataclass(frozen=True)
class Question:
    """M held-out entries whose truth is known, N unknown entries to fill, C categories."""

    held: Entries
    present: np.ndarray
    """(M,) bool"""
    fill: Entries
    scale: Scale
    seed: int = 0

    @property
    def categories(self) -> int:
        return len(self.scale.rate)


@dataclass(frozen=True)
class Probabilities:
    """Calibrated logits of P(present). No entry's own label has taught what made its logit."""

    held: np.ndarray
    """(M,)"""
    fill: np.ndarray
    """(N,)"""
    from_intra: np.ndarray
    from_cross: np.ndarray
    """(N,) what each kind of evidence adds to the logit."""


@dataclass(frozen=True)
class Filling:
    precision: float | None
    values: np.ndarray
    """(N,) int8: PRESENT, ABSENT, or UNKNOWN where it is left."""
    thresholds: dict[str, np.ndarray]
    """"present", "absent" → (C,) logits from (up to) which an entry is filled; infinite where none is."""
    certificates: dict[str, list[Certificate]]

    def count(self, value: int) -> int:
        return int((self.values == value).sum())

    @property
    def coverage(self) -> float:
        return float((self.values != UNKNOWN).mean()) if len(self.values) else 0.0


def probabilities(question: Question) -> Probabilities:
    """Calibrate. Held-out and unknown entries are dealt into the same folds, so that both are scored alike."""
    held, fill = terms_of(question.held, question.scale), terms_of(question.fill, question.scale)
    if not len(question.held):
        nothing = np.zeros(len(question.fill))
        return Probabilities(np.zeros(0), question.fill.logit.astype(float), nothing, nothing)
    draw = np.random.default_rng((question.seed, 37))
    held_folds, fill_folds = (draw.integers(0, FOLDS, len(part), dtype=np.int8) for part in (held, fill))
    fitted = fit_folds(held, question.held.category, question.present, held_folds, question.categories)
    weights = np.stack([calibrator.weights for calibrator in fitted])
    return Probabilities(
        crossfitted(fitted, held, question.held.category, held_folds),
        crossfitted(fitted, fill, question.fill.category, fill_folds),
        (weights[fill_folds, INTRA] * fill[:, INTRA]).sum(1),
        (weights[fill_folds, CROSS] * fill[:, CROSS]).sum(1),
    )


def decide(
    question: Question, found: Probabilities, precision: float, risk: float, shift: Shift | None = None
) -> Filling:
    """Fill as much as keeps `precision`, with confidence 1 - risk, of the present and of the absent ones."""
    shift = shift or no_shift(question.categories, len(question.held))
    kept = shift.stands_for
    held = (found.held + shift.logit[question.held.category])[kept]
    fill = found.fill + shift.logit[question.fill.category]
    present, places = question.present[kept], (question.held.category[kept], question.fill.category)
    given, thresholds, values = {}, {}, np.zeros(len(fill), np.int8)
    for name, value, sign in (("present", PRESENT, 1), ("absent", ABSENT, -1)):
        right = present if value == PRESENT else ~present
        side = Side(expit(sign * held), right, places[0], expit(sign * fill), places[1])
        given[name] = certificates(side, question.categories, precision, risk)
        cuts = probability_cuts(given[name], question.categories)
        values[side.fill >= cuts[places[1]]] = value
        thresholds[name] = sign * _logit_cut(cuts)
    return Filling(precision, values, thresholds, given)


def probability_cuts(given: list[Certificate], categories: int) -> np.ndarray:
    """(C,) the probability from which a category is filled, 2 where it is not."""
    cuts = np.full(categories, 2.0)
    for part in given:
        if part.threshold is not None:
            cuts[list(part.categories)] = part.threshold
    return cuts


def _logit_cut(cuts: np.ndarray) -> np.ndarray:
    inside = np.clip(cuts, None, 1 - 1e-12)
    return np.where(cuts > 1, np.inf, np.log(inside) - np.log1p(-inside))


def fill_without_promise(question: Question, found: Probabilities, level: float = PLAIN_LEVEL) -> Filling:
    """Nothing was held out: take the model's own word where it is sure."""
    cut = float(np.log(level) - np.log1p(-level))
    values = np.where(found.fill >= cut, PRESENT, np.where(found.fill <= -cut, ABSENT, UNKNOWN)).astype(np.int8)
    every = np.ones(question.categories)
    return Filling(None, values, {"present": cut * every, "absent": -cut * every}, {"present": [], "absent": []})


def origins(filling: Filling, logits: np.ndarray, found: Probabilities, category: np.ndarray) -> np.ndarray:
    """(N,) str: the least without which an entry would have been left: model, intra, cross, intra+cross; or none.

    Evidence is taken away by setting what it adds to the logit to zero, that is to average evidence.
    """
    result = np.full(len(logits), "none", dtype=object)
    for name, value, sign in (("present", PRESENT, 1), ("absent", ABSENT, -1)):
        chosen = np.flatnonzero(filling.values == value)
        cut = sign * filling.thresholds[name][category[chosen]] - ROUNDING
        intra, cross = sign * found.from_intra[chosen], sign * found.from_cross[chosen]
        alone = sign * logits[chosen] - intra - cross
        with_intra, with_cross = alone + intra >= cut, alone + cross >= cut
        stronger = np.where(with_intra & (~with_cross | (intra >= cross)), "intra", "cross")
        by_one = np.where(with_intra | with_cross, stronger, "intra+cross")
        result[chosen] = np.where(alone >= cut, "model", by_one)
    return result
