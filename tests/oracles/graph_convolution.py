"""Graph convolution entry by entry and node by node."""

import math

import numpy as np


def adjacency(graph, threshold, weight):
    """Lists of P(j | i) → Â: edges from `threshold` on, neighbours worth `weight` together, then D^-½ W D^-½."""
    count = len(graph)
    weights = [[0.0] * count for _ in range(count)]
    for i in range(count):
        neighbours = [j for j in range(count) if j != i and graph[i][j] >= threshold]
        for j in neighbours:
            weights[i][j] = weight / len(neighbours)
        weights[i][i] = 1 - weight if neighbours or weight < 1 else 1.0
    degrees = [sum(row) for row in weights]
    return [[weights[i][j] / math.sqrt(degrees[i] * degrees[j]) for j in range(count)] for i in range(count)]


def convolutions(states, matrix, first, second):
    """states (C, in), Â (C, C), first (hidden, in), second (out, hidden) → (C, out)."""
    middle = [np.where(x > 0, x, 0.2 * x) for x in _layer(states, matrix, first)]
    return np.array(_layer(middle, matrix, second))


def _layer(states, matrix, weights):
    messages = [weights @ state for state in states]
    return [sum(matrix[i][j] * messages[j] for j in range(len(states))) for i in range(len(states))]
