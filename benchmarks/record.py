"""One line per figure in others.csv: what is measured beside something else, once, and not by `bench`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Literal, TypeVar

import pandas as pd

from fewtags.files import write_text

OTHERS = Path(__file__).parent / "others.csv"
Result = TypeVar("Result")


@dataclass(frozen=True)
class Figure:
    benchmark: str
    """The script's name: running it again replaces its figures."""
    what: str
    ours: float
    rival: float | None
    rival_name: str
    unit: str
    target: float | None = None
    """Of ours itself, or of ours / rival where `of_ratio`."""
    sense: Literal["at least", "at most"] = "at most"
    of_ratio: bool = False

    @property
    def ratio(self) -> float:
        return float("nan") if not self.rival else self.ours / self.rival

    @property
    def met(self) -> bool | None:
        """None: nothing was promised."""
        value = self.ratio if self.of_ratio else self.ours
        if self.target is None or value != value:
            return None
        return value <= self.target if self.sense == "at most" else value >= self.target


def record(figures: list[Figure], out: Path = OTHERS) -> None:
    """Write figures, in place of earlier ones of the same benchmarks, and print them."""
    mine = {figure.benchmark for figure in figures}
    kept = [figure for figure in read(out) if figure.benchmark not in mine]
    write_text(out, pd.DataFrame([asdict(figure) for figure in [*kept, *figures]]).to_csv(index=False))
    for figure in figures:
        print(said(figure))


def read(path: Path) -> list[Figure]:
    if not path.is_file():
        return []
    rows = pd.read_csv(path).astype(object)
    rows = rows.where(rows.notna(), None)
    rows[["rival_name", "unit"]] = rows[["rival_name", "unit"]].fillna("")
    return [Figure(**row) for row in rows.to_dict("records")]  # type: ignore[misc]


def said(figure: Figure) -> str:
    """`k-means: 1.2 s (scikit-learn's KMeans, looped 9.1 s, 0.13×), target ≤ 0.2×: met`"""
    beside = f" ({figure.rival_name} {shown(figure, figure.rival)}, {figure.ratio:.3g}×)" if figure.rival else ""
    text = f"{figure.what}: {shown(figure, figure.ours)}{beside}"
    return text if figure.target is None else f"{text}, target {bound(figure)}: {verdict(figure)}"


def bound(figure: Figure) -> str:
    sign = "≤" if figure.sense == "at most" else "≥"
    return f"{sign} {figure.target:g}" + ("×" if figure.of_ratio else f" {figure.unit}")


def verdict(figure: Figure) -> str:
    return {True: "met", False: "MISSED", None: ""}[figure.met]


def shown(figure: Figure, value: float) -> str:
    """A number with the figure's unit."""
    number = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{number} {figure.unit}".rstrip()


def alternating(
    contenders: dict[str, Callable[[], Result]], rounds: int
) -> tuple[dict[str, float], dict[str, Result]]:
    """Median seconds, and the last result, of each, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    results = {}
    for _ in range(rounds):
        for name, run in contenders.items():
            started = time.perf_counter()
            results[name] = run()
            seconds[name].append(time.perf_counter() - started)
    return {name: median(times) for name, times in seconds.items()}, results
