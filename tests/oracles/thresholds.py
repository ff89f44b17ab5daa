"""Made-up problems whose half point is known, and thresholds by plain counting."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


PROBLEMS = {
    # name: (P(present | evidence), where it is one half)
    "logistic": (lambda e: sigmoid((e - 0.5) / 0.06), 0.5),
    "square": (lambda e: e**2, 0.5**0.5),
    "ramp": (lambda e: np.clip(3 * (e - 0.45) + 0.5, 0, 1), 0.45),
    "step": (lambda e: np.where(e < 0.42, 0.01, 0.9), 0.42),
    "slow below, fast above": (lambda e: np.where(e < 0.5, 8 * e**4, 1 - 0.5 * np.exp(-8 * (e - 0.5))), 0.5),
    "fast below, slow above": (
        lambda e: np.where(e < 0.4, 0.5 * (e / 0.4) ** 4, 0.95 - 0.45 * np.exp(-4 * (e - 0.4))),
        0.4,
    ),
    "never sure": (lambda e: 0.01 + 0.7 * sigmoid((e - 0.6) / 0.05), 0.6 + 0.05 * np.log(0.49 / 0.21)),
}


def evidence_with_few_positives(count, rng):
    """Nine of ten entries have hardly any evidence; one of ten has some of any strength."""
    return np.where(rng.random(count) < 0.9, rng.beta(1, 15, count), rng.random(count)).astype(np.float32)


def draw(name, count, seed, few=True):
    rng = np.random.default_rng(seed)
    evidence = evidence_with_few_positives(count, rng) if few else rng.random(count).astype(np.float32)
    present = rng.random(count) < PROBLEMS[name][0](evidence)
    return evidence, np.where(present, 1, -1)


def right_and_wrong(evidence, labels, theta):
    above = [label for value, label in zip(evidence, labels, strict=True) if value >= theta]
    return above.count(1), above.count(-1)
