"""Which cases `bench` measures: module × contender × categories × batch × map, and what each must hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from typing import Literal

from benchmarks.workload import KNOWN, SIZES

CATEGORIES, BATCHES, SIDES = (20, 80, 200, 1000), (4, 8, 32), (7, 14)
Scale = Literal["paper", "tiny"]
FLOAT_BYTES = 4

CONTENDERS = {
    "sd": ("ours", "textbook"),
    "graph": ("ours", "textbook", "textbook_product"),
    "intra": ("ours", "textbook"),
    "cross": ("ours", "textbook"),
    "thresholds": ("ours", "textbook"),
    "heads": ("ours", "textbook", "textbook_product"),
    "train": ("ours", "bare"),
    "predict": ("ours", "bare"),
}
"""Who is compared, by module. `textbook_product`: its graph passes messages by matrix products, not one by one."""
SEES_MAP = ("sd", "heads")
WHOLE = ("train", "predict")
"""With the backbone, ResNet-101 at 448 pixels; the map of 14×14 is pooled to 7×7 first, or not."""


@dataclass(frozen=True)
class Case:
    module: str
    contender: str
    categories: int
    batch: int
    side: int
    """Of the square map that the heads see."""
    known: float = KNOWN
    """Share of labels that are known."""
    scale: Scale = "paper"

    @property
    def name(self) -> str:
        """`heads/C80/b8/7x7/ours`"""
        share = "" if self.known == KNOWN else f"/known{self.known:g}"
        return f"{self.size}{share}/{self.contender}"

    @property
    def size(self) -> str:
        return f"{self.module}/C{self.categories}/b{self.batch}/{self.side}x{self.side}"

    def key(self) -> dict[str, object]:
        """What tells this case's rows from others in results.csv."""
        return asdict(self)


def all_cases() -> list[Case]:
    """Contenders of one size stand together, so that they alternate."""
    sizes = [(module, *size) for module in CONTENDERS for size in _sizes(module)]
    cases = [Case(module, "ours", *size) for module, *size in sizes]
    cases += [
        Case("intra", "ours", categories, 8, 7, known) for categories in (80, 200) for known in (0.1, 0.9, 1.0)
    ]
    return [replace(case, contender=contender) for case in cases for contender in CONTENDERS[case.module]]


def _sizes(module: str) -> list[tuple[int, int, int]]:
    """(categories, batch, side)."""
    if module in WHOLE:
        return [(categories, batch, side) for categories in (80, 200) for batch in (4, 8) for side in SIDES]
    sides = SIDES if module in SEES_MAP else SIDES[:1]
    return [(categories, batch, side) for categories in CATEGORIES for batch in BATCHES for side in sides]


def quick_cases() -> list[Case]:
    """Every module and contender once, small: a smoke test."""
    return [
        Case(module, contender, 8, 4, 3, scale="tiny")
        for module, contenders in CONTENDERS.items()
        for contender in contenders
    ]


def chosen(cases: list[Case], patterns: list[str]) -> list[Case]:
    """Those whose name matches a pattern such as `heads/C80/*` or `sd`; all, without patterns."""
    if not patterns:
        return cases
    return [case for case in cases if any(fnmatch(case.name, f"{pattern.rstrip('*')}*") for pattern in patterns)]


def least_bytes(case: Case) -> int:
    """What the textbook must hold at once for its gradient, at least; 0 for others, which are just tried."""
    if not case.contender.startswith("textbook"):
        return 0
    images, categories, places = case.batch, case.categories, case.side**2
    size, joint, hidden = (int(SIZES[name]) for name in ("feature_size", "joint_size", "pair_hidden"))  # type: ignore[call-overload]
    pair, count = int(SIZES["pair_size"]), int(SIZES["prototypes"])  # type: ignore[call-overload]
    by_module = {
        "sd": images * categories * places * (2 * joint + size),  # tanh, P tanh + b, the weighted places
        "graph": images * categories * size * (40 if case.contender == "textbook_product" else categories + 40),
        "intra": images * categories**2 * (2 * size + 2 * pair + hidden),
        "cross": categories * size * (3 * images**2 + images * count),
        "thresholds": images * categories,
    }
    floats = sum(by_module.values()) if case.module == "heads" else by_module[case.module]
    return FLOAT_BYTES * floats
