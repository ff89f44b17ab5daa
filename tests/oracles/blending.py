"""Blending of features and labels, entry by entry, with plain lists."""

import math


def mixed(own, other, share):
    return [share * a + (1 - share) * b for a, b in zip(own, other, strict=True)]


def instance_level(features, beside, labels, partners, share):
    """Lists (B, C, D), (B, C), (B, C), (B,) → blended features, blended beside, {(n, c): soft target}."""
    new_features = [[list(feature) for feature in image] for image in features]
    new_beside = [list(image) for image in beside]
    targets = {}
    for n, m in enumerate(partners):
        for c in range(len(labels[n])):
            if labels[n][c] == 0 and labels[m][c] == 1:
                new_features[n][c] = mixed(features[n][c], features[m][c], share)
                new_beside[n][c] = share * beside[n][c] + (1 - share) * beside[m][c]
                targets[n, c] = 1 - share
    return new_features, new_beside, targets


def prototype_level(features, beside, chosen, share):
    """`chosen`: {n: (category, unit prototype, the category's usual beside)} → the same three."""
    new_features = [[list(feature) for feature in image] for image in features]
    new_beside = [list(image) for image in beside]
    targets = {}
    for n, (c, prototype, usual) in chosen.items():
        length = math.sqrt(sum(x * x for x in features[n][c]))
        new_features[n][c] = mixed(features[n][c], [length * x for x in prototype], share)
        new_beside[n][c] = share * beside[n][c] + (1 - share) * usual
        targets[n, c] = 1 - share
    return new_features, new_beside, targets


def loss(logits, labels, soft, weights=None, normalization="batch"):
    """Soft cross-entropy over known and blended entries; `soft`: {(n, c): target}."""
    per_image, weight_sums, entries = [], [], 0
    for n, row in enumerate(logits):
        total = used = 0.0
        for c, x in enumerate(row):
            entries += 1
            if (n, c) in soft:
                target, weight = soft[n, c], 1.0
            elif labels[n][c] != 0:
                target, weight = (1.0 if labels[n][c] == 1 else 0.0), 1.0 if weights is None else weights[n][c]
            else:
                continue
            probability = 1 / (1 + math.exp(-x))
            total -= weight * (target * math.log(probability) + (1 - target) * math.log(1 - probability))
            used += weight
        per_image.append(total)
        weight_sums.append(used)
    if normalization == "categories":
        return sum(per_image) / entries
    if normalization == "image":
        return sum(t / u for t, u in zip(per_image, weight_sums, strict=True) if u) / len(logits)
    return sum(per_image) / sum(weight_sums) if sum(weight_sums) else 0.0
