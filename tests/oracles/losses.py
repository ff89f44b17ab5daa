"""Losses by plain loops, from the equations of the specification."""

import math


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def bce(logit, label):
    return -math.log(sigmoid(logit)) if label == 1 else -math.log(sigmoid(-logit))


def partial_bce(logits, labels, normalization, weights=None):
    per_image, total, count = [], 0.0, 0.0
    for n, row in enumerate(labels):
        image_total, image_count = 0.0, 0.0
        for c, label in enumerate(row):
            if label == 0:
                continue
            weight = 1.0 if weights is None else weights[n][c]
            image_total += weight * bce(logits[n][c], label)
            image_count += weight
        per_image.append(image_total / image_count if image_count else 0.0)
        total, count = total + image_total, count + image_count
    if normalization == "image":
        return sum(per_image) / len(per_image)
    if normalization == "categories":
        return total / (len(labels) * len(labels[0]))
    return total / count if count else 0.0


def asymmetric(logit, label, gamma_present, gamma_absent, shift):
    p = sigmoid(logit)
    if label == 1:
        return (1 - p) ** gamma_present * -math.log(p)
    if label == -1:
        shifted = max(p - shift, 0.0)
        return shifted**gamma_absent * -math.log(1 - shifted)
    return 0.0


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def contrastive(features, labels, partners=(), partner_labels=(), include_absent_pairs=False):
    """features[n][c], labels[n][c]; partners[c][q], partner_labels[c][q]."""
    pulled, pushed = [], []

    def pair(a, b, label_a, label_b):
        if label_a == 1 and label_b == 1:
            pulled.append(1 - cosine(a, b))
        elif label_a * label_b == -1 or (include_absent_pairs and label_a == label_b == -1):
            pushed.append(1 + cosine(a, b))

    for c in range(len(labels[0])):
        for n in range(len(labels)):
            for m in range(n):
                pair(features[n][c], features[m][c], labels[n][c], labels[m][c])
            for q in range(len(partners[c]) if len(partners) else 0):
                pair(features[n][c], partners[c][q], labels[n][c], partner_labels[c][q])

    def mean(values):
        return sum(values) / len(values) if values else 0.0

    return mean(pulled) / 2 + mean(pushed) / 2
