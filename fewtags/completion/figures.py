"""What completion.json says: how much was filled, what is promised and on which grounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from fewtags.completion.calibration import reliability
from fewtags.completion.filling import Filling, Question, decide, origins, probabilities
from fewtags.completion.precision import Certificate, fewest
from fewtags.labels.table import ABSENT, PRESENT

if TYPE_CHECKING:
    from fewtags.completion.complete import Looked, Wanted

LEVELS = (0.8, 0.9, 0.95, 0.99)
SIDES = {"present": PRESENT, "absent": ABSENT}
MISSING_AT_RANDOM = (
    "The promise assumes that labels are missing at random: that unknown ones are like the known ones. People "
    "tend to tag what is salient. --audit 200 measures the true precision on these data; --prior sets base rates."
)
BY_A_COIN = "Labels were hidden at random (`known`), so the promise rests on no assumption."
OTHER_IMAGES = (
    "{count:,} of the images were not trained on: for them the promise also assumes that they look like "
    "the training images."
)
NO_PROMISE = (
    "No label was held out of training, so nothing can be promised and the probabilities are the model's own. "
    "Train with `--holdout 0.1` for calibrated ones and --precision."
)
TAUGHT_THETA = (
    "The held-out labels also taught the thresholds θ of training (`threshold_labels: holdout`): the promise is "
    "slightly optimistic."
)


def figures(looked: Looked, wanted: Wanted, filling: Filling, levels: list[Filling]) -> dict[str, Any]:
    question, names = looked.question, looked.tagger.categories
    alone = score_alone(question, [part.precision or 0 for part in levels], wanted.risk)
    origin = origins(filling, looked.logits, looked.found, question.fill.category)
    return {
        "images": len(looked.data.table),
        "unknown": len(question.fill),
        "filled": {side: filling.count(value) for side, value in SIDES.items()},
        "coverage": filling.coverage,
        "precision": filling.precision,
        "confidence": wanted.confidence,
        "held_out": {"labels": len(question.held), "present": int(question.present.sum())},
        "caveats": caveats(looked),
        "messages": messages(filling, wanted.risk, names),
        "levels": [level(part, alone.get(part.precision or 0)) for part in levels],
        "scopes": {side: [scope(part, names) for part in filling.certificates[side]] for side in SIDES},
        "calibration": calibration(looked),
        "origins": dict(Counter(origin[origin != "none"].tolist())),
        "prior": None if looked.rates is None else prior(looked, wanted),
    }


def caveats(looked: Looked) -> list[str]:
    if not len(looked.question.held):
        return [NO_PROMISE]
    found = [BY_A_COIN if looked.known.at_random else MISSING_AT_RANDOM]
    others = len(np.setdiff1d(np.unique(looked.row), looked.known.trained))
    if others:
        found.append(OTHER_IMAGES.format(count=others))
    if looked.tagger.recipe.threshold_labels == "holdout":
        found.append(TAUGHT_THETA)
    return found


def level(filling: Filling, score_only: Filling | None) -> dict[str, Any]:
    """One row of the table of levels."""
    found: dict[str, Any] = {"precision": filling.precision, "coverage": filling.coverage}
    for side, value in SIDES.items():
        given = filling.certificates[side]
        found[side] = {
            "filled": filling.count(value),
            "coverage": float((filling.values == value).mean()) if len(filling.values) else 0.0,
            "reachable": max((part.reachable or 0.0 for part in given), default=0.0) or None,
            "promised": any(part.threshold is not None for part in given),
        }
        if score_only is not None:
            found[side]["coverage_of_score_alone"] = float((score_only.values == value).mean())
    return found


def scope(part: Certificate, names: list[str]) -> dict[str, Any]:
    """A category judged on its own, or all others pooled."""
    title = f"{len(part.categories)} categories pooled" if part.pooled else names[part.categories[0]]
    return {"scope": title} | {k: v for k, v in asdict(part).items() if k not in ("categories", "pooled")}


def score_alone(question: Question, levels: list[float], risk: float) -> dict[float, Filling]:
    """The plain classifier through the same calibration, at the same levels; {} if there is nothing else."""
    plain = plain_question(question)
    if not levels or plain is None:
        return {}
    found = probabilities(plain)
    return {value: decide(plain, found, value, risk) for value in levels}


def plain_question(question: Question) -> Question | None:
    """The same with the plain classifier's score and no evidence; None if it is that already."""
    evidence = question.fill.plain, question.fill.intra, question.fill.cross
    if all(np.isnan(part).all() for part in evidence):
        return None
    held, fill = question.held.score_alone(), question.fill.score_alone()
    return Question(held, question.present, fill, question.scale, question.seed)


def messages(filling: Filling, risk: float, names: list[str]) -> list[str]:
    """Where the labels do not support the precision asked for, and what they do support."""
    if filling.precision is None:
        return []
    found = []
    for side, given in filling.certificates.items():
        for part in given:
            if part.threshold is None:
                whose = "" if part.pooled else f" ({names[part.categories[0]]})"
                reach = "nothing" if part.reachable is None else f"{part.reachable:.2f}"
                found.append(
                    f"{side}{whose}: not enough labels for {filling.precision:g}; reachable: {reach}. "
                    f"{filling.precision:g} needs at least {fewest(filling.precision, risk)} faultless "
                    "held-out acceptances."
                )
    return found


def calibration(looked: Looked) -> dict[str, Any] | None:
    """ECE and the reliability curve on held-out labels, before and after; None without any."""
    question = looked.question
    if not len(question.held):
        return None
    before = reliability(expit(question.held.logit.astype(float)), question.present)
    after = reliability(expit(looked.found.held), question.present)
    return {"before": asdict(before), "after": asdict(after)}


def prior(looked: Looked, wanted: Wanted) -> dict[str, Any]:
    assert looked.rates is not None
    old, kept = looked.question.scale.rate, looked.shift.stands_for
    rates = {
        name: {"known": round(float(a), 4), "unknown": round(float(b), 4)}
        for name, a, b in zip(looked.tagger.categories, old, looked.rates, strict=True)
    }
    return {"from": wanted.prior, "held_out_kept": int(kept.sum()), "rates": rates}
