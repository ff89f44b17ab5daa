"""Pairs of categories within an image, by plain loops."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def pair_logit(f_i, f_j, i, j, weights, released=False):
    """One pair, with its features put side by side, as the paper draws it."""
    if released and i > j:
        f_i, f_j, i, j = f_j, f_i, j, i
    g_i, g_j = (weights["reduce"] @ f + weights["reduce_bias"] for f in (f_i, f_j))
    if not released:
        g_i, g_j = np.maximum(g_i, 0), np.maximum(g_j, 0)
    wide = np.concatenate([weights["asked"], weights["given"]], axis=1)
    state = np.maximum(wide @ np.concatenate([g_i, g_j]) + weights["asked_bias"], 0)
    if released:
        state = weights["extra"] @ state + weights["extra_bias"]
    score, bias = weights["score"], weights["score_bias"]
    if score.ndim == 3:
        score, bias = score[j, i], bias[j, i]
    return score @ state + bias


def target(y_i, y_j, kind):
    if kind == "conditional":
        return y_i if y_j == 1 else 0
    if kind == "both_known":
        return 0 if 0 in (y_i, y_j) else (1 if y_i == y_j == 1 else -1)
    if kind == "three_valued":
        return min(y_i, y_j)
    return 1 if y_i == y_j == 1 else -1


def evidence(probability, labels, kind, self_evidence):
    """probability(n, i, j); labels[n][c] → evidence[n][c], or None without any."""
    result = []
    for n, row in enumerate(labels):
        line = []
        for i in range(len(row)):
            found = [
                1.0 if i == j else probability(n, i, j)
                for j, y in enumerate(row)
                if y == 1 and (j != i or self_evidence)
            ]
            line.append((sum(found) / len(found) if kind == "mean" else sum(found)) if found else None)
        result.append(line)
    return result
