"""Other base rates than those of the known labels: given by a file, or estimated on the unknown entries.

People tag what is salient, so a category can be rarer among unknown labels than among known ones. If only its rate
differs (label shift), logits move by logit π - logit π₀, and held-out labels stand for unknown ones once they are
thinned to the new rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from fewtags.errors import Problems, UserError

LOWEST_RATE = 1e-4
STEPS = 200


@dataclass(frozen=True)
class Shift:
    logit: np.ndarray
    """(C,) what is added to the logits of a category."""
    stands_for: np.ndarray
    """(M,) bool: the held-out entries that look like a sample of the unknown ones."""


def no_shift(categories: int, held: int) -> Shift:
    return Shift(np.zeros(categories), np.ones(held, bool))


def shift_to(
    rates: np.ndarray, known_rates: np.ndarray, category: np.ndarray, present: np.ndarray, seed: int
) -> Shift:
    """New and known rates (C,), held-out entries (M,) → the shift.

    An entry is kept with a chance in proportion to π/π₀ if present, (1 - π)/(1 - π₀) if absent.
    """
    new, old = (np.clip(values, LOWEST_RATE, 1 - LOWEST_RATE) for values in (rates, known_rates))
    weight = np.where(present, (new / old)[category], ((1 - new) / (1 - old))[category])
    draw = np.random.default_rng((seed, 41)).random(len(weight))
    kept = draw * weight.max(initial=0) < weight
    return Shift(logit(new) - logit(old), kept)


def estimated_rates(logits: np.ndarray, category: np.ndarray, known_rates: np.ndarray) -> np.ndarray:
    """Calibrated logits (N,) of unknown entries → (C,) their base rates by EM (Saerens et al. 2002).

    π ← mean of σ(logit p + logit π - logit π₀), from π = π₀ on.
    """
    old = np.clip(known_rates, LOWEST_RATE, 1 - LOWEST_RATE)
    count = np.maximum(np.bincount(category, minlength=len(old)), 1)
    rates = old.copy()
    for _ in range(STEPS):
        moved = expit(logits + (logit(rates) - logit(old))[category])
        found = np.bincount(category, moved, len(old)) / count
        new = np.clip(
            np.where(np.bincount(category, minlength=len(old)) > 0, found, old), LOWEST_RATE, 1 - LOWEST_RATE
        )
        if np.abs(new - rates).max() < 1e-6:
            break
        rates = new
    return rates


def read_rates(file: str | Path, categories: list[str], known_rates: np.ndarray) -> np.ndarray:
    """A CSV with columns category and rate → (C,); categories that it leaves out keep their known rate."""
    path = Path(file)
    if not path.is_file():
        raise UserError(f"--prior {file}: neither a file nor the word estimate")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as problem:
        raise UserError(f"{path}: not readable as CSV ({problem})") from problem
    if missing := [name for name in ("category", "rate") if name not in table]:
        raise UserError(f"{path}: no column {', '.join(missing)}; it needs category and rate")
    return _rates(path, table, categories, known_rates)


def _rates(path: Path, table: pd.DataFrame, categories: list[str], known_rates: np.ndarray) -> np.ndarray:
    rates, problems = known_rates.copy(), Problems(str(path))
    for line, (name, text) in enumerate(zip(table["category"], table["rate"], strict=True), start=2):
        rate = pd.to_numeric(text, errors="coerce")
        if name not in categories:
            problems.add(f"line {line}, column 'category': the run has no category {name!r}")
        elif not 0 <= rate <= 1:
            problems.add(f"line {line}, column 'rate': {text!r} is not a share between 0 and 1")
        else:
            rates[categories.index(name)] = rate
    problems.raise_if_any()
    return rates
