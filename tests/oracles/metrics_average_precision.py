"""Average precision by plain loops over the definition."""


def curve(scores, labels):
    """[(precision, recall)] when everything scoring at least t is taken, for each distinct t from the top."""
    known = [(s, y) for s, y in zip(scores, labels, strict=True) if y != 0]
    positives = sum(1 for _, y in known if y == 1)
    points = []
    for threshold in sorted({s for s, _ in known}, reverse=True):
        taken = [y for s, y in known if s >= threshold]
        right = sum(1 for y in taken if y == 1)
        points.append((right / len(taken), right / positives))
    return points


def average_precision(scores, labels):
    if not any(y == 1 for y in labels):
        return float("nan")
    total, before = 0.0, 0.0
    for precision, recall in curve(scores, labels):
        total += (recall - before) * precision
        before = recall
    return total


def voc_average_precision(scores, labels):
    if not any(y == 1 for y in labels):
        return float("nan")
    points = curve(scores, labels)
    total, before = 0.0, 0.0
    for step, (_, recall) in enumerate(points):
        total += (recall - before) * max(precision for precision, _ in points[step:])
        before = recall
    return total
