"""What was promised about speed and memory, to be shown beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Quantity = Literal["time ratio", "memory ratio", "seconds", "gigabytes"]


@dataclass(frozen=True)
class Target:
    module: str
    quantity: Quantity
    """Ratios are rival / ours, except against the bare backbone, where they are ours / rival."""
    bound: float
    sense: Literal["at least", "at most"]
    categories: int | None = None
    """None: for any number."""
    batch: int | None = None
    side: int | None = None
    rival: str = "textbook"

    def concerns(self, module: str, categories: int, batch: int, side: int) -> bool:
        asked = (self.module, self.categories, self.batch, self.side)
        given = (module, categories, batch, side)
        return all(want is None or want == have for want, have in zip(asked, given, strict=True))

    def met(self, value: float) -> bool:
        return value >= self.bound if self.sense == "at least" else value <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.sense == "at least" else "≤"
        unit = {"seconds": " s", "gigabytes": " GB"}.get(self.quantity, "×")
        return f"{sign} {self.bound:g}{unit}"


TARGETS = (
    Target("sd", "time ratio", 10, "at least"),
    Target("intra", "time ratio", 20, "at least"),
    Target("cross", "time ratio", 3, "at least"),
    Target("heads", "time ratio", 3.5, "at least", 80),
    Target("heads", "time ratio", 7, "at least", 200),
    Target("heads", "memory ratio", 6, "at least", 200, 4),
    Target("heads", "gigabytes", 8, "at most", 1000, 32),
    Target("heads", "seconds", 1.27, "at most", 80, 8, 7),
    Target("heads", "seconds", 3.16, "at most", 200, 8, 7),
    Target("heads", "gigabytes", 1.5, "at most", 200, 8, 7),
    Target("train", "time ratio", 1.35, "at most", 80, rival="bare"),
    Target("train", "time ratio", 1.8, "at most", 200, rival="bare"),
    Target("predict", "time ratio", 1.15, "at most", 80, rival="bare"),
    Target("predict", "time ratio", 1.3, "at most", 200, rival="bare"),
)
