"""simulation.csv, one row per order, seed and round, and what it says in sentences.

The rows of `full_labels` are the same method with every label: what all orders are on their way to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fewtags.files import write_text
from fewtags.report.words import percent, points
from fewtags.review.orders import ORDERS
from fewtags.simulation.rounds import FULL, START

FILE = "simulation.csv"
KEY = ("order", "seed", "round")
COUNTS = ("answers", "presents_found")
FIGURES = (
    *("asked", "known", "answers_per_present"),
    *("mAP", "OF1", "CF1"),
    *("label_accuracy", "present_precision", "present_recall"),
    *("completeness", "completed_accuracy", "filled_precision", "filled_recall"),
)
COLUMNS = (*KEY, *COUNTS, *FIGURES)
DIGITS = 4


def collected(figures: Iterable[dict[str, Any]], orders: Sequence[str]) -> pd.DataFrame:
    """Figures of finished rounds → rows; the start is round 0 of every order that is wanted or there."""
    found = list(figures)
    shown = [order for order in ORDERS if order in orders or any(row["order"] == order for row in found)]
    rows = [row for row in found if row["order"] != START]
    rows += [row | {"order": order} for row in found if row["order"] == START for order in shown]
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(FIGURES, float))
    place = table["order"].map({name: place for place, name in enumerate((*shown, FULL))})
    table = table.assign(place=place).sort_values(["place", "seed", "round"]).drop(columns="place")
    return table.reset_index(drop=True)


def write_results(folder: Path, rows: pd.DataFrame) -> pd.DataFrame:
    write_text(folder / FILE, rows.round(DIGITS).to_csv(index=False, lineterminator="\n"))
    return read_results(folder)


def read_results(folder: Path) -> pd.DataFrame:
    return pd.read_csv(Path(folder) / FILE, dtype={"order": str})


@dataclass(frozen=True)
class Reached:
    """Where an order ended, mean over the seeds."""

    order: str
    seeds: int
    answers: float
    asked: float
    """Share of all training labels that was asked."""
    known: float
    start: float | None
    mAP: float | None  # noqa: N815  the metric's name
    full: float | None
    """mAP at the start, at the end, and with all labels."""
    start_accuracy: float
    accuracy: float
    presents_found: float
    answers_per_present: float | None

    @property
    def share(self) -> float | None:
        """Of the mAP with all labels."""
        return None if self.mAP is None or not self.full else self.mAP / self.full

    @property
    def sentence(self) -> str:
        """`25 % of the labels asked, 97 % of full-label mAP reached`"""
        asked = f"{percent(self.asked)} of the labels asked"
        return f"{asked}, {percent(self.share)} of full-label mAP reached" if self.share is not None else asked


def orders_in(rows: pd.DataFrame) -> list[str]:
    return [order for order in ORDERS if (rows["order"] == order).any()]


def means(rows: pd.DataFrame, order: str) -> pd.DataFrame:
    """Of an order, per round that all of its seeds have: the mean of every figure over the seeds."""
    own = rows[rows["order"] == order]
    sizes = own.groupby("round").size()
    return own[own["round"].isin(sizes[sizes == sizes.max()].index)].groupby("round").mean(numeric_only=True)


def reached(rows: pd.DataFrame, order: str) -> Reached:
    over = means(rows, order)
    first, last = over.iloc[0], over.iloc[-1]
    seeds = set(rows.loc[rows["order"] == order, "seed"])
    full = rows[(rows["order"] == FULL) & rows["seed"].isin(seeds)]["mAP"].mean()
    return Reached(
        order=order,
        seeds=len(seeds),
        answers=last["answers"],
        asked=last["asked"],
        known=last["known"],
        start=_or_none(first["mAP"]),
        mAP=_or_none(last["mAP"]),
        full=_or_none(full),
        start_accuracy=first["label_accuracy"],
        accuracy=last["label_accuracy"],
        presents_found=last["presents_found"],
        answers_per_present=last["answers"] / last["presents_found"] if last["presents_found"] else None,
    )


def _or_none(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def headline(ends: Sequence[Reached]) -> str:
    """Of the order that `review` would take (or the first there is): never the one that came out best."""
    end = ends[0]
    if end.share is None:
        return f"Order {end.order}: {end.sentence}; no test label is known, so that no mAP can be told."
    seeds = f", mean of {end.seeds} seeds" if end.seeds > 1 else ""
    scores = (
        f"{points(end.start)} mAP at the start, {points(end.mAP)} in the end, {points(end.full)} with all labels"
    )
    return f"{end.sentence} (order {end.order}: {scores}{seeds})."


def cost_sentence(ends: Sequence[Reached]) -> str:
    """What finding a present label costs a person, in answers."""
    parts = [
        f"{end.order} {points(end.answers_per_present)}" if end.answers_per_present else f"{end.order} found none"
        for end in ends
    ]
    return f"Answers per present label found: {', '.join(parts)}."


def accuracy_sentence(ends: Sequence[Reached]) -> str:
    parts = [f"{end.order} {points(end.start_accuracy)} → {points(end.accuracy)} %" for end in ends]
    return f"Training labels right when every hole is filled with what is likelier: {', '.join(parts)}."
