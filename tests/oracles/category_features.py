"""Category features by plain loops and the paper's unfolded formula."""

import numpy as np


def semantic_decoupling(places, words, to_joint, word_to_joint, project, project_bias, score, score_bias):
    """places (N, D), words (C, E), U (J, D), V (J, E), P (d2, J), b (d2,), f_a (d2,), bias → (C, D), (C, N)."""
    features, attention = [], []
    for word in words:
        scores = []
        for place in places:
            joint = np.tanh((to_joint @ place) * (word_to_joint @ word))
            scores.append(score @ (project @ joint + project_bias) + score_bias)
        raised = np.exp(np.array(scores) - max(scores))
        weights = raised / raised.sum()
        attention.append(weights)
        features.append(sum(weight * place for weight, place in zip(weights, places, strict=True)))
    return np.array(features), np.array(attention)


def semantic_attention(places, activation, activation_bias, transform, transform_bias):
    """places (N, D0), activation (C, D0), transform (D, D0) → features (C, D), activation maps (C, N)."""
    features, maps = [], []
    for row, bias in zip(activation, activation_bias, strict=True):
        total, scores = 0, []
        for place in places:
            scores.append(row @ place + bias)
            total = total + (transform @ place + transform_bias) / (1 + np.exp(-scores[-1]))
        features.append(total)
        maps.append(scores)
    return np.array(features), np.array(maps)
