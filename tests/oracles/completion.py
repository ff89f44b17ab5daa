"""Calibration, promises and priors by plain counting and loops."""

import math
from itertools import combinations


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def tail_by_enumeration(accepted, wrong, filled, total_wrong):
    """P(at most `wrong` of the accepted are wrong), over every way to choose which entries are held out."""
    entries = [i < total_wrong for i in range(accepted + filled)]
    few = ways = 0
    for chosen in combinations(entries, accepted):
        ways += 1
        few += sum(chosen) <= wrong
    return few / ways


def binomial_tail(accepted, wrong, share):
    return sum(math.comb(accepted, k) * share**k * (1 - share) ** (accepted - k) for k in range(wrong + 1))


def calibrated_logit(weights, offset, z, intra, cross, rate):
    """b + o + a₊ ln(1 + eᶻ) - a₋ ln(1 + e⁻ᶻ) + evidence + rate; evidence by one weight for no and one for yes."""
    bias, above, below, intra_no, intra_yes, cross_no, cross_yes, w_rate = weights
    yes = 1 / (1 + math.exp(-z))
    w_intra, w_cross = (1 - yes) * intra_no + yes * intra_yes, (1 - yes) * cross_no + yes * cross_yes
    score = above * math.log(1 + math.exp(z)) - below * math.log(1 + math.exp(-z))
    return bias + offset + score + w_intra * intra + w_cross * cross + w_rate * rate


def surprise(weights, offsets, rows, aim, spread, offset_spread):
    """Negative log posterior; rows of (z, intra, cross, rate, category, present)."""
    total = 0.0
    for *parts, category, present in rows:
        p = sigmoid(calibrated_logit(weights, offsets[category], *parts))
        total -= math.log(p if present else 1 - p)
    total += sum(((w - a) / s) ** 2 / 2 for w, a, s in zip(weights, aim, spread, strict=True))
    return total + sum((o / offset_spread) ** 2 / 2 for o in offsets)


def expected_calibration_error(probabilities, present, bins):
    total = 0.0
    for b in range(bins):
        inside = [
            (p, y)
            for p, y in zip(probabilities, present, strict=True)
            if b / bins <= p < (b + 1) / bins or (b == bins - 1 and p == 1)
        ]
        if inside:
            mean = sum(p for p, _ in inside) / len(inside)
            share = sum(y for _, y in inside) / len(inside)
            total += len(inside) / len(probabilities) * abs(mean - share)
    return total


def rate_by_em(probabilities, known_rate, steps=2000):
    """Saerens: weigh present and absent by how their rates differ, average, repeat."""
    rate = known_rate
    for _ in range(steps):
        r1, r0 = rate / known_rate, (1 - rate) / (1 - known_rate)
        rate = sum(r1 * p / (r1 * p + r0 * (1 - p)) for p in probabilities) / len(probabilities)
    return rate
