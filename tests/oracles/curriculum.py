"""Labelling strategies and the loss of curriculum learning by plain loops, from the publication's equations."""

import itertools

from tests.oracles.losses import bce, sigmoid


def proportional_bce(logits, labels, weights=None):
    """Mean over images of g(p)/C · Σ BCE, g(p) = -4.45 p + 5.45."""
    total = 0.0
    for n, row in enumerate(labels):
        loss, share = 0.0, 0.0
        for c, label in enumerate(row):
            if label:
                weight = 1.0 if weights is None else weights[n][c]
                loss += weight * bce(logits[n][c], label)
                share += weight / len(row)
        total += (-4.45 * share + 5.45) * loss / len(row)
    return total / len(labels)


def threshold(logit, least):
    if sigmoid(logit) >= least:
        return 1
    return -1 if sigmoid(logit) <= 1 - least else 0


def label(strategy, logits, second, labels, least, share):
    """(n, C) of +1, -1, 0: what is given to each entry; always 0 where a label is known."""
    entries = [(n, c) for n, row in enumerate(labels) for c, value in enumerate(row) if value == 0]
    given = [[0] * len(row) for row in labels]
    if strategy == "proportion":
        surest = sorted(entries, key=lambda e: (-abs(logits[e[0]][e[1]]), e))
        for n, c in surest[: round(share * len(entries))]:
            given[n][c] = 1 if logits[n][c] >= 0 else -1
        return given
    for n, c in entries:
        decided = threshold(logits[n][c], least)
        if strategy == "positives":
            decided = max(decided, 0)
        if strategy == "agreement" and decided != threshold(second[n][c], least):
            decided = 0
        given[n][c] = decided
    return given


def round_lengths(epochs, ends):
    edges = [0, *ends, epochs]
    return [after - before for before, after in itertools.pairwise(edges)]
