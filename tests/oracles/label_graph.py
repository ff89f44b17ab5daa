"""Conditional frequencies by counting, and a gated graph step node by node."""

import math

import numpy as np


def conditional_graph(labels, kind, smoothing=None):
    images, categories = len(labels), len(labels[0])
    graph = np.zeros((categories, categories))
    for j in range(categories):
        known = [row[j] for row in labels if row[j] != 0]
        base_rate = sum(value == 1 for value in known) / len(known) if known else 0.0
        for i in range(categories):
            if i == j:
                continue
            both = sum(labels[n][i] == 1 and labels[n][j] == 1 for n in range(images))
            present = sum(labels[n][i] == 1 for n in range(images))
            trials = sum(labels[n][i] == 1 and labels[n][j] != 0 for n in range(images))
            if kind == "released":
                graph[i, j] = both / present if present else 0.0
            else:
                graph[i, j] = (both + smoothing * base_rate) / (trials + smoothing)
    return graph


def log_marginal_likelihood(hits, trials, base_rate, smoothing):
    """log P(hits) of one ordered pair, by the product of predictive probabilities (Polya's urn)."""
    total, ones, zeros = 0.0, 0, 0
    for outcome in [1] * hits + [0] * (trials - hits):
        chance = (ones + smoothing * base_rate) / (ones + zeros + smoothing)
        total += math.log(chance if outcome else 1 - chance)
        ones, zeros = ones + outcome, zeros + 1 - outcome
    return total


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated_graph(states, adjacency, steps, w, bias, u_gates, u_candidate):
    """states (C, D); w (3D, 2D), bias (3D,) of update, reset, candidate; u_gates (2D, D), u_candidate (D, D)."""
    size = states.shape[1]
    for _ in range(steps):
        after = []
        for i in range(len(states)):
            incoming = sum(adjacency[i, j] * states[j] for j in range(len(states)))
            outgoing = sum(adjacency[j, i] * states[j] for j in range(len(states)))
            message = w @ np.concatenate([incoming, outgoing]) + bias
            update = sigmoid(message[:size] + u_gates[:size] @ states[i])
            reset = sigmoid(message[size : 2 * size] + u_gates[size:] @ states[i])
            candidate = np.tanh(message[2 * size :] + u_candidate @ (reset * states[i]))
            after.append((1 - update) * states[i] + update * candidate)
        states = np.array(after)
    return states


def classifier(states, features, join, join_bias, rows, bias):
    """One image: states, features (C, D) → logits (C,)."""
    logits = []
    for c in range(len(states)):
        joined = np.tanh(join @ np.concatenate([states[c], features[c]]) + join_bias)
        logits.append(rows[c] @ joined + bias[c])
    return np.array(logits)
