"""Memories of features, by plain lists."""

import math


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def similarity(feature, remembered, kind):
    found = [cosine(feature, other) for other in remembered]
    if not found:
        return 0.0
    return sum(found) / len(found) if kind == "mean" else max(found)


class Newest:
    """The newest `capacity` features of one category."""

    def __init__(self, capacity):
        self.capacity, self.features = capacity, []

    def push(self, feature):
        self.features = ([*self.features, feature])[-self.capacity :] if self.capacity else []
