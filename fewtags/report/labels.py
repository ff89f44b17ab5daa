"""Names written beside lines and points so that they do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes

CHARACTER = 6.6
"""Mean width of a character of a chart's text, in points."""
LINE = 14.0


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """The heights moved as little as possible until neighbours are `gap` apart; their order stays."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    groups = [[index] for index in order]
    while True:
        middles = [_middle(group, heights) for group in groups]
        touching = [
            place
            for place, (lower, upper) in enumerate(pairwise(groups))
            if middles[place + 1] - middles[place] < gap * (len(lower) + len(upper)) / 2 - 1e-9
        ]
        if not touching:
            break
        place = touching[0]
        groups[place : place + 2] = [groups[place] + groups[place + 1]]
    moved = dict.fromkeys(order, 0.0)
    for group in groups:
        for place, index in enumerate(group):
            moved[index] = _middle(group, heights) + gap * (place - (len(group) - 1) / 2)
    return [moved[index] for index in range(len(heights))]


def _middle(group: Sequence[int], heights: Sequence[float]) -> float:
    return sum(heights[index] for index in group) / len(group)


Box = tuple[float, float, float, float]
"""left, bottom, right, top in points."""


def name_points(
    axes: Axes, points: Sequence[tuple[float, float]], names: Sequence[str], colours: Sequence[str], size: float
) -> None:
    """Write each name right of its point, or left, above or below where that is free; the limits must be set."""
    places = [tuple(place * 72 / axes.figure.dpi for place in axes.transData.transform(point)) for point in points]
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    figure_width = axes.figure.get_figwidth() * 72  # type: ignore[union-attr]
    for (x, y), point, name, colour in zip(places, points, names, colours, strict=True):
        width = CHARACTER * len(name) * size / 12.5
        offset, alignment = min(_offsets(), key=lambda o: _cost(_box(x, y, width, *o), taken, figure_width))
        taken.append(_box(x, y, width, offset, alignment))
        axes.annotate(
            name, point, offset, textcoords="offset points", ha=alignment, va="center", color=colour, fontsize=size
        )


def _offsets() -> list[tuple[tuple[float, float], str]]:
    """Where a name may stand, best first."""
    near = [((9, 0), "left"), ((-9, 0), "right"), ((0, 13), "center"), ((0, -13), "center")]
    far = [((8, 11), "left"), ((8, -11), "left"), ((-8, 11), "right"), ((-8, -11), "right")]
    farther = [
        ((8, 22), "left"),
        ((8, -22), "left"),
        ((-8, 22), "right"),
        ((-8, -22), "right"),
        ((0, 26), "center"),
    ]
    return [*near, *far, *farther]  # type: ignore[list-item]


def _box(x: float, y: float, width: float, offset: tuple[float, float], alignment: str) -> Box:
    left = x + offset[0] - {"left": 0.0, "right": width, "center": width / 2}[alignment]
    return left, y + offset[1] - LINE / 2, left + width, y + offset[1] + LINE / 2


def _cost(box: Box, taken: Sequence[Box], figure_width: float) -> float:
    """The area that it would cover, and what would stand outside the drawing."""
    covered = sum(
        max(0.0, min(box[2], other[2]) - max(box[0], other[0]))
        * max(0.0, min(box[3], other[3]) - max(box[1], other[1]))
        for other in taken
    )
    outside = max(0.0, -box[0]) + max(0.0, box[2] - figure_width)
    return covered + 100 * outside
