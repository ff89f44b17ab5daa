"""A category's discriminant by loops and Gauss' elimination, and what it reads of an image."""

import math
from collections.abc import Sequence

Matrix = Sequence[Sequence[float]]


def root_description(
    maps: Sequence[Sequence[Matrix]], class_weight: Matrix, class_bias: Sequence[float]
) -> list[list[float]]:
    """Maps (n, channels, H, W) → signed roots of the features' means; roots of class probabilities, of the image
    and the greatest of nine windows; each part of mean variance 1, all centred."""
    pooled = [[_mean(channel) for channel in image] for image in maps]
    parts = [[[math.copysign(math.sqrt(abs(x)), x) for x in row] for row in pooled]]
    if class_bias:
        parts.append([[math.sqrt(p) for p in _probabilities(row, class_weight, class_bias)] for row in pooled])
        parts.append([_greatest(image, class_weight, class_bias) for image in maps])
    scaled = [_centred_to_variance_one(part) for part in parts]
    return [[x for part in scaled for x in part[image]] for image in range(len(maps))]


def _greatest(image: Sequence[Matrix], weight: Matrix, bias: Sequence[float]) -> list[float]:
    height, width = len(image[0]), len(image[0][0])
    seen = []
    for i in range(3):
        for j in range(3):
            rows = range(math.floor(i * height / 3), math.ceil((i + 1) * height / 3))
            columns = range(math.floor(j * width / 3), math.ceil((j + 1) * width / 3))
            window = [_mean([[channel[r][c] for c in columns] for r in rows]) for channel in image]
            seen.append(_probabilities(window, weight, bias))
    return [math.sqrt(max(ps)) for ps in zip(*seen, strict=True)]


def _mean(values: Matrix) -> float:
    flat = [x for row in values for x in row]
    return sum(flat) / len(flat)


def _probabilities(row: Sequence[float], weight: Matrix, bias: Sequence[float]) -> list[float]:
    exponentials = [
        math.exp(sum(w * x for w, x in zip(weights, row, strict=True)) + b)
        for weights, b in zip(weight, bias, strict=True)
    ]
    return [e / sum(exponentials) for e in exponentials]


def _centred_to_variance_one(part: Matrix) -> list[list[float]]:
    n, size = len(part), len(part[0])
    means = [sum(row[d] for row in part) / n for d in range(size)]
    variances = [sum((row[d] - means[d]) ** 2 for row in part) / n for d in range(size)]
    width = math.sqrt(sum(variances) / size)
    return [[(row[d] - means[d]) / width for d in range(size)] for row in part]


def left_out_scores(maps: Matrix, present: Sequence[Sequence[bool]], ridge: float) -> list[list[float]]:
    """Each centred image's score for each category, by the mean of the category's other images."""
    found = []
    for image, row in enumerate(maps):
        scores = []
        for c in range(len(present[0])):
            others = [here[c] and place != image for place, here in enumerate(present)]
            weight = direction(maps, others, ridge)
            scores.append(sum(w * x for w, x in zip(weight, row, strict=True)))
        found.append(scores)
    return found


def direction(maps: Matrix, present: Sequence[bool], ridge: float) -> list[float]:
    """(Σ + ridge · mean variance · I)⁻¹ (mean where present - mean of all)."""
    n, size = len(maps), len(maps[0])
    mean = [sum(row[d] for row in maps) / n for d in range(size)]
    cov = [[sum((r[a] - mean[a]) * (r[b] - mean[b]) for r in maps) / n for b in range(size)] for a in range(size)]
    extra = ridge * sum(cov[d][d] for d in range(size)) / size
    chosen = [row for row, here in zip(maps, present, strict=True) if here]
    towards = [sum(row[d] for row in chosen) / len(chosen) - mean[d] for d in range(size)]
    rows = [[cov[a][b] + extra * (a == b) for b in range(size)] + [towards[a]] for a in range(size)]
    for a in range(size):
        for b in range(size):
            if a != b:
                factor = rows[b][a] / rows[a][a]
                rows[b] = [x - factor * y for x, y in zip(rows[b], rows[a], strict=True)]
    return [rows[a][size] / rows[a][a] for a in range(size)]
