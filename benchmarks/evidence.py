"""Tables for the pages of docs/: what the single benchmarks and `fewtags simulate` have found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from benchmarks.claim import AVERAGE, OURS, Scores, claims
from benchmarks.tuning import AS_IT_IS, COUNTS
from fewtags.benchmark.table import NOTHING, Cell, Table, figure, p_value, percent, signed

CONFIDENCE = 0.95
FULL = "full_labels"
FOUND = {"recall": "right", "recall_alone": "right_alone", "best": "best", "best_alone": "best_alone"}
"""What the table of promises shows as a share of what is there, and the column that counts it."""


def summary(rows: pd.DataFrame, risk: float) -> pd.DataFrame:
    """Per method, level and side: masks, broken promises, how many are allowed, coverage and precision."""
    rows = rows.assign(**{column: np.nan for column in FOUND.values() if column not in rows})
    grouped = rows.groupby(["method", "level", "side"], sort=True)
    table = grouped.agg(masks=("mask", "nunique"), broken=("broken", "sum"), precision=("precision", "mean"))
    table["allowed"] = binom.ppf(0.99, table["masks"], risk).astype(int)
    table["coverage"] = grouped.apply(lambda part: float((part["filled"] / part["unknown"]).mean()))
    for name, column in FOUND.items():
        table[name] = grouped.apply(lambda part, column=column: float((part[column] / part["there"]).mean()))
    table["nothing_filled"] = grouped.apply(lambda part: int((part["filled"] == 0).sum()))
    return table.round(4).reset_index()


def promise(rows: pd.DataFrame) -> Table:
    """How often the promise was broken, and how much was filled."""
    found = summary(rows, 1 - CONFIDENCE).sort_values(["side", "level", "method"], ascending=[False, True, False])
    lines = [
        (
            row["side"],
            f"{row['level']:g}",
            row["method"],
            f"{row['broken']:.0f} of {row['masks']} ({row['allowed']} allowed)",
            f"{row['precision']:.3f}" if row["precision"] == row["precision"] else NOTHING,
            *(NOTHING if np.isnan(row[name]) else f"{100 * row[name]:.1f} %" for name in FOUND),
            str(row["nothing_filled"]),
        )
        for row in found.to_dict("records")
    ]
    found_columns = ("found", "plain beside it", "at best", "plain beside it, at best")
    columns = ("side", "promised", "method", "broken", "precision", *found_columns, "nothing filled in")
    return Table("How often the promise was broken", columns, tuple(tuple(map(Cell, line)) for line in lines))


def _over_images(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Of the seeds whose predictions are there: how many, the interval, and p."""
    if not row["drawn_seeds"]:
        return NOTHING, NOTHING, NOTHING
    interval = f"{signed(row['images_low'], 2)} to {signed(row['images_high'], 2)}"
    return str(row["drawn_seeds"]), interval, p_value(row["images_p"])


def claim(rows: pd.DataFrame) -> Table:
    """One method against each rival: over seeds, and over draws of the test images."""
    lines = [
        (
            row["known"] if row["known"] == AVERAGE else percent(float(row["known"])),
            f"`{row['rival']}`",
            str(row["seeds"]),
            signed(row["difference"], 2),
            signed(row["smallest"], 2),
            p_value(row["t_p"]),
            p_value(row["t_p_holm"]),
            *_over_images(row),
        )
        for row in rows.astype({"known": str}).to_dict("records")
    ]
    columns = (
        "known",
        "against",
        "seeds",
        "ahead by",
        "at least",
        "p over seeds",
        "p, Holm",
        "seeds drawn",
        "95 % over images",
        "p over images",
    )
    methods = " and ".join(rows["method"].unique())
    return Table(f"{methods} against each rival, mAP", columns, tuple(tuple(map(_code, line)) for line in lines))


def with_discriminant(rows: pd.DataFrame) -> Table:
    """Each rival alone and with the discriminant of `hst`; how far `hst` is ahead of it then, and how certain.

    p: paired, one-sided, over seeds, with Holm's correction over the rivals of a share.
    """
    grouped = rows.assign(ahead=rows["hst"] - rows["with_discriminant"]).groupby(["known", "method"], sort=False)
    found = grouped.agg(
        seeds=("seed", "nunique"),
        alone=("mAP", "mean"),
        beside=("with_discriminant", "mean"),
        hst=("hst", "mean"),
        ahead=("ahead", "mean"),
        least=("ahead", "min"),
    )
    certain = {(row["known"], row["rival"]): row["t_p_holm"] for row in claims(_both(rows), OURS)}
    lines = [
        (
            percent(float(row["known"])),
            f"`{row['method']}`",
            str(row["seeds"]),
            *(f"{row[name]:.1f}" for name in ("alone", "beside", "hst")),
            *(signed(row[name], 2) for name in ("ahead", "least")),
            p_value(certain.get((f"{row['known']:g}", row["method"]))),
        )
        for row in found.reset_index().sort_values(["known", "beside"]).to_dict("records")
    ]
    columns = ("known", "rival", "seeds", "alone", "with it", "hst", "hst ahead by", "at least", "p, Holm")
    return Table(
        "Rivals with the discriminant of hst, mAP", columns, tuple(tuple(map(_code, line)) for line in lines)
    )


def lead(rows: pd.DataFrame) -> Table:
    """`hst` at each share, and the rival that comes closest on its own seeds: as it is, and with discriminant."""
    rows = rows.assign(alone=rows["hst"] - rows["mAP"], beside=rows["hst"] - rows["with_discriminant"])
    lines = []
    for share, found in rows.groupby("known"):
        gaps = found.groupby("method")[["alone", "beside"]].mean().assign(seeds=found["method"].value_counts())
        scores = (found["mAP"][found["method"] == "plain"], found.drop_duplicates("seed")["hst"])
        cells = (percent(float(share)), *(figure(own.mean()) for own in scores))
        lines.append((*map(Cell, cells), *_closest(gaps, "alone"), *_closest(gaps, "beside")))
    closest = ("closest rival", "closest, given HST's discriminant")
    columns = (column for name in closest for column in (name, "HST ahead by (seeds)"))
    return Table("mAP on photographs", ("labels known", "plain", "HST", *columns), tuple(lines))


def _closest(gaps: pd.DataFrame, gap: str) -> tuple[Cell, Cell]:
    found = gaps.loc[gaps[gap].idxmin()]
    return Cell(str(found.name), code=True), Cell(f"{signed(found[gap])} ({found['seeds']:.0f})")


def _both(rows: pd.DataFrame) -> Scores:
    """What `claims` compares: rivals with the discriminant, and `hst`."""
    theirs = {(row.known, row.method, row.seed): np.array([row.with_discriminant]) for row in rows.itertuples()}
    return {(row.known, OURS, row.seed): np.array([row.hst]) for row in rows.itertuples()} | theirs


def tuning(rows: pd.DataFrame) -> Table:
    """The configurations of each method, the best marked; mean over seeds."""
    found = rows.groupby(["method", "configuration"], sort=False)["mAP"].mean().unstack(sort=False)
    lines = [
        (Cell(str(method), code=True), *(Cell(figure(mAP), best=mAP == tried.max()) for mAP in tried))
        for method, tried in found.iterrows()
    ]
    return Table("mAP on the development split", ("method", *map(str, found.columns)), tuple(lines))


def changes(rows: pd.DataFrame) -> Table:
    """Single settings of hst: mAP beside that without the change, and what the modules filled."""
    usual = rows.set_index(["configuration", "seed"])["mAP"][AS_IT_IS]
    within, across = ("within: right", "within: found"), ("across: right", "across: filled")
    columns = ("setting", "seeds", "mAP", "more than as it is", *within, *across)
    lines = []
    for name, tried in rows.groupby("configuration", sort=False):
        counts = tried[list(COUNTS)].apply(pd.to_numeric, errors="coerce").sum()
        lines.append(
            (
                Cell(str(name), code=name != AS_IT_IS),
                Cell(str(len(tried))),
                Cell(figure(tried["mAP"].mean(), 2)),
                Cell(signed((tried["mAP"] - tried["seed"].map(usual)).mean(), 2)),
                Cell(_share(counts["intra_right"], counts["intra_made"])),
                Cell(_share(counts["intra_right"], counts["reachable"])),
                Cell(_share(counts["cross_right"], counts["cross_made"])),
                Cell(f"{counts['cross_made'] / len(tried):,.0f}"),
            )
        )
    return Table("One setting changed, development split", columns, tuple(lines))


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else NOTHING


def _code(text: str) -> Cell:
    return Cell(text.strip("`"), code=text.startswith("`"))


def simulation(rows: pd.DataFrame) -> Table:
    """mAP by order and answers, as a mean over seeds, and as a share of what all labels bring."""
    full = rows[rows["order"] == FULL].set_index("seed")["mAP"]
    played = rows[rows["order"] != FULL].assign(share=lambda part: 100 * part["mAP"] / part["seed"].map(full))
    rounds = sorted(played["round"].unique())
    asked = played.groupby("round")["asked"].mean()
    lines = [
        (order, *(_scored(own[own["round"] == number]) for number in rounds))
        for order, own in played.groupby("order", sort=False)
    ]
    columns = ("order", *(f"{100 * asked[number]:.0f} % asked" for number in rounds))
    return Table(
        "mAP, and its share of what all labels bring", columns, tuple(tuple(map(Cell, line)) for line in lines)
    )


def _scored(rows: pd.DataFrame) -> str:
    """`51.9 ± 0.4 (91 %)`"""
    spread = f" ± {rows['mAP'].std():.1f}" if len(rows) > 1 else ""
    return f"{rows['mAP'].mean():.1f}{spread} ({rows['share'].mean():.0f} %)" if len(rows) else NOTHING
