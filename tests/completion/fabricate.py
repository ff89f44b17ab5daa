"""Made-up scores and evidence whose truth is known, and masks drawn over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from fewtags.completion.calibration import Entries, scale_of
from fewtags.completion.filling import Question


@dataclass
class World:
    """Truth (n, C), an overconfident and biased score, a noisier one, and evidence that knows something else."""

    truth: np.ndarray
    logits: np.ndarray
    plain: np.ndarray
    intra: np.ndarray
    cross: np.ndarray


def world(images: int = 600, categories: int = 8, seed: int = 0, evidence: bool = True) -> World:
    rng = np.random.default_rng(seed)
    shape = images, categories
    seen, unseen = rng.normal(0, 2.5, shape), rng.normal(0, 2.0, shape)
    truth = rng.random(shape) < expit(seen + unseen + rng.uniform(-3, -0.5, categories))
    logits = 1.7 * seen + rng.normal(0, 0.5, categories)
    plain = seen + np.random.default_rng((seed, 1)).normal(0, 1.5, shape)
    intra = expit(unseen + rng.normal(0, 1.0, shape))
    cross = 0.3 * unseen + rng.normal(0, 0.5, shape) + rng.normal(0, 1, categories)
    intra[rng.random(images) < 0.2] = np.nan
    if not evidence:
        plain = intra = cross = np.full(shape, np.nan)
    return World(truth, *(values.astype(np.float32) for values in (logits, plain, intra, cross)))


def question(given: World, seed: int, known: float = 0.5, holdout: float = 0.2) -> tuple[Question, np.ndarray]:
    """One mask: the question it poses, and the truth (N,) of the entries to fill, for the judge alone."""
    draw = np.random.default_rng((seed, 99)).random(given.truth.shape)
    held, fill = draw < known * holdout, draw >= known
    trained = ~held & ~fill
    scale = scale_of(
        (given.truth & trained).sum(0),
        trained.sum(0),
        np.where(trained, np.nan, given.intra),
        np.where(trained, np.nan, given.cross),
    )
    asked = Question(entries(given, held), given.truth[held], entries(given, fill), scale, seed)
    return asked, given.truth[fill]


def entries(given: World, chosen: np.ndarray) -> Entries:
    category = np.nonzero(chosen)[1]
    columns = given.logits, given.plain, given.intra, given.cross
    return Entries(category, *(column[chosen] for column in columns))
