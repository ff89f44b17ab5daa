"""Where the paper contradicts itself, computed from its tables and from what its text says about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pandas as pd

from fewtags.benchmark import paper

PRINTED = 0.05 + 1e-9
"""Half of the last printed digit: a difference of rounding is no contradiction."""
SUBTRACTED = 0.01
"""Differences of two printed figures are stated in the same digits; more than this is no rounding."""


@dataclass(frozen=True)
class Gain:
    """X is better than Y by Z, as the text states it; on averages unless a known share is given."""

    where: str
    better: str
    worse: str
    metric: str
    stated: dict[str, float]
    """Data set → points."""
    known: str = "average"


COCO, VG, VOC = "MS-COCO", "VG-200", "VOC 2007"
SHARES = [f"0.{tenth}" for tenth in range(1, 10)]
OVER_ASL = (0.9, 1.8, 2.2, 1.5, 1.5, 1.3, 1.2, 1.1, 0.7)


def _three(coco: float, vg: float, voc: float) -> dict[str, float]:
    return {COCO: coco, VG: vg, VOC: voc}


GAINS = [
    Gain("Introduction, gain over the conference version", "HST", "SST", "mAP", _three(1.3, 3.0, 0.5)),
    Gain("Performance on MS-COCO", "HST", "SST", "mAP", {COCO: 1.2}),
    Gain("Performance on MS-COCO", "HST", "SST", "OF1", {COCO: 0.9}),
    Gain("Performance on MS-COCO", "HST", "SST", "CF1", {COCO: 1.4}),
    *(
        Gain("Performance on MS-COCO", "HST", "ASL", "mAP", {COCO: stated}, known)
        for known, stated in zip(SHARES, OVER_ASL, strict=True)
    ),
    Gain("Performance on VG-200", "HST", "KGGR", "mAP", {VG: 4.6}, "0.1"),
    Gain("Performance on VG-200", "HST", "GCN-ML", "mAP", {VG: 8.6}, "0.1"),
    Gain("Performance on VG-200", "HST", "ASL", "mAP", {VG: 6.2}, "0.9"),
    Gain("Performance on VG-200", "HST", "SST", "mAP", {VG: 3.0}),
    Gain("Performance on VG-200", "HST", "SST", "OF1", {VG: 6.4}),
    Gain("Performance on VG-200", "HST", "SST", "CF1", {VG: 7.1}),
    Gain("Performance on VOC 2007", "HST", "KGGR", "mAP", {VOC: 3.0}, "0.1"),
    Gain("Performance on VOC 2007", "HST", "P-GCN", "mAP", {VOC: 1.8}, "0.1"),
    Gain("Performance on VOC 2007", "HST", "SST", "mAP", {VOC: 2.8}, "0.1"),
    Gain("Analysis of HST", "HST", "SSGRL", "mAP", _three(3.8, 5.1, 1.4)),
    Gain("Analysis of HST", "HST", "SSGRL w/ PL", "mAP", _three(2.6, 4.0, 1.3)),
    Gain("Analysis of IST", "Ours IST", "SSGRL", "mAP", _three(2.3, 2.7, 0.5)),
    Gain("Analysis of IST", "Ours IST", "SSGRL", "OF1", {COCO: 1.6, VG: 4.4}),
    Gain("Analysis of IST", "Ours IST", "SSGRL", "CF1", {COCO: 2.6, VG: 6.7}),
    Gain("Analysis of IST", "Ours IST", "Ours IST w/o L_ist", "mAP", _three(0.9, 0.8, 1.0)),
    Gain("Analysis of CST", "Ours CST", "SSGRL", "mAP", _three(2.4, 3.0, 0.9)),
    Gain("Analysis of CST", "Ours CST", "SSGRL", "OF1", _three(0.7, 4.7, 0.2)),
    Gain("Analysis of CST", "Ours CST", "SSGRL", "CF1", _three(1.7, 9.3, 0.9)),
    Gain("Analysis of CST", "Ours CST", "Ours CST w/o L_cst", "mAP", _three(1.0, 0.6, 0.4)),
    Gain("Analysis of CST", "Ours CST", "Ours CST w/ IL", "mAP", _three(1.0, 0.6, 0.4)),
    Gain("Analysis of DTL", "DTL", "0.7", "mAP", _three(0.4, 0.9, 0.4)),
    Gain("Complementary augmentation", "HST w/ FB", "HST", "mAP", {COCO: 0.8}),
    Gain("Complementary augmentation", "HST w/ FB", "HST", "OF1", {COCO: 0.3}),
    Gain("Complementary augmentation", "HST w/ FB", "HST", "CF1", {COCO: 0.5}),
]
"""Every difference that the text states in figures and the tables can confirm."""

BEST_PREVIOUS = _three(1.4, 3.3, 0.4)
"""The abstract: gain in average mAP over the best previous algorithm."""
BEST_FIXED = {
    (COCO, "0.1"): "0.7",
    (COCO, "0.2"): "0.8",
    (COCO, "0.6"): "0.5",
    (VG, "0.1"): "0.5",
    (VOC, "0.1"): "0.6",
}
"""Analysis of DTL: the best fixed threshold per data set and known share."""
SECOND_BEST = {(COCO, "average"): "ASL", (VOC, "0.1"): "SST"}
"""Whom the text calls the second best."""


@cache
def contradictions() -> pd.DataFrame:
    """where, says, but: each place where a figure or a sentence does not agree with the paper's own tables."""
    found = [
        *_values_that_differ(),
        *_averages_that_differ(),
        *_gains_that_differ(),
        *_best_previous(),
        *_second_best(),
        *_hst_not_best(),
        *_learned_not_best(),
        *_best_fixed(),
        *_own_labels_do_not_help(),
    ]
    return pd.DataFrame(found, columns=["where", "says", "but"])


Found = list[tuple[str, str, str]]


@cache
def every_figure() -> pd.DataFrame:
    """All printed figures, one per row: source, dataset, method (theirs, one spelling), metric, known, value."""
    main = paper.read("results").assign(source="main tables")
    fixed = paper.read("thresholds").rename(columns={"threshold": "method", "mAP": "value"})
    fixed = fixed.assign(source="table of thresholds", metric="mAP")
    ablations = paper.read("ablations").melt(["table", "dataset", "method"], var_name="metric")
    ablations = ablations.assign(source="table " + ablations["table"], known="average").drop(columns="table")
    table = pd.concat([main, fixed, ablations], ignore_index=True).dropna(subset="value")
    return table.assign(method=table["method"].replace({"Ours": "HST", "DTL": "HST"}))


def value(dataset: str, method: str, metric: str, known: str) -> float:
    """The first place that prints it: main tables, thresholds, ablations."""
    return _first_values()[dataset, "HST" if method == "DTL" else method, metric, known]


@cache
def _first_values() -> dict[tuple[str, ...], float]:
    names = ["dataset", "method", "metric", "known"]
    rows = every_figure().drop_duplicates(names)[[*names, "value"]].itertuples(index=False)
    return {tuple(map(str, key)): float(value) for *key, value in rows}


def _values_that_differ() -> Found:
    """One quantity, two printed values."""
    names, found = ["dataset", "method", "metric", "known"], []
    pairs = every_figure().merge(every_figure().drop_duplicates(names), on=names, suffixes=("", "_first"))
    for row in pairs[(pairs["value"] - pairs["value_first"]).abs() > SUBTRACTED].itertuples():
        where = f"{row.method} on {row.dataset}, {row.metric}, {share(str(row.known))}"
        found.append((where, f"{row.value_first} ({row.source_first})", f"{row.value} ({row.source})"))
    return found


def _averages_that_differ() -> Found:
    found = []
    for (source, dataset, method, metric), rows in every_figure().groupby(
        ["source", "dataset", "method", "metric"]
    ):
        nine = rows[rows["known"] != "average"]["value"]
        printed = rows[rows["known"] == "average"]["value"]
        if len(nine) == 9 and abs(printed.iloc[0] - nine.mean()) > PRINTED:
            where = f"{source}, {dataset}, {method}: average {metric}"
            found.append((where, f"{printed.iloc[0]}", f"{nine.mean():.2f} is the mean of its nine figures"))
    return found


def _gains_that_differ() -> Found:
    found = []
    for gain in GAINS:
        for dataset, stated in gain.stated.items():
            figures = [value(dataset, name, gain.metric, gain.known) for name in (gain.better, gain.worse)]
            if abs(figures[0] - figures[1] - stated) > SUBTRACTED:
                says = f"{gain.better} over {gain.worse} on {dataset}: +{stated} {gain.metric}"
                but = f"{figures[0]} - {figures[1]} = {figures[0] - figures[1]:+.1f}"
                found.append((gain.where, says, but))
    return found


def _ranked(dataset: str, known: str, metric: str = "mAP") -> pd.Series:
    """method → value of the main table, best first."""
    table = paper.read("results")
    rows = table[(table["dataset"] == dataset) & (table["known"] == known) & (table["metric"] == metric)]
    return rows.set_index("method")["value"].sort_values(ascending=False, kind="stable")


def _best_previous() -> Found:
    found = []
    for dataset, stated in BEST_PREVIOUS.items():
        ranked = _ranked(dataset, "average")
        others = ranked.drop("HST")
        gain = ranked["HST"] - others.iloc[0]
        if abs(gain - stated) > SUBTRACTED:
            whose = ", the authors' earlier version," if others.index[0] == "SST" else ""
            but = f"{others.index[0]}{whose} has {others.iloc[0]}, so {gain:+.1f}"
            found.append(("Abstract", f"+{stated} mAP over the best previous algorithm on {dataset}", but))
    return found


def _second_best() -> Found:
    found = []
    for (dataset, known), named in SECOND_BEST.items():
        others = _ranked(dataset, known).drop("HST")
        better = others[others > others[named]]
        if len(better):
            says = f"{named} is the second best on {dataset} ({share(known)}: {others[named]})"
            found.append((f"Performance on {dataset}", says, _listed(better)))
    return found


def _hst_not_best() -> Found:
    """The text on VOC 2007: consistently outperforms the current methods under all proportion settings."""
    found = []
    for known in SHARES:
        ranked = _ranked(VOC, known)
        others = ranked.drop("HST")
        level = others[others >= ranked["HST"]]
        if len(level):
            says = f"HST outperforms all under all proportions; {share(known)}: {ranked['HST']}"
            found.append((f"Performance on {VOC}", says, _listed(level)))
    return found


def _fixed(dataset: str, known: str) -> pd.Series:
    table = paper.read("thresholds")
    rows = table[(table["dataset"] == dataset) & (table["known"] == known)]
    return rows.set_index("threshold")["mAP"]


def _learned_not_best() -> Found:
    """The text: the DTL algorithm can always obtain the best mAPs."""
    found = []
    for dataset in (COCO, VG, VOC):
        for known in SHARES:
            mapped = _fixed(dataset, known)
            better = mapped[mapped > mapped["DTL"]]
            if len(better):
                says = f"learned thresholds are always best; {dataset}, {share(known)}: {mapped['DTL']}"
                found.append(("Analysis of DTL", says, _listed(better, "fixed at ")))
    return found


def _best_fixed() -> Found:
    found = []
    for (dataset, known), named in BEST_FIXED.items():
        fixed = _fixed(dataset, known).drop("DTL")
        better = fixed[fixed > fixed[named]]
        if len(better):
            says = f"{named} is the best fixed threshold on {dataset}, {share(known)} ({fixed[named]})"
            found.append(("Analysis of DTL", says, _listed(better[better == better.max()], "fixed at ")))
    return found


def _own_labels_do_not_help() -> Found:
    """The text: SSGRL w/ PL also achieves slight performance improvements in terms of other metrics."""
    found = []
    for dataset in (COCO, VG, VOC):
        for metric in ("OF1", "CF1"):
            with_labels, without = (value(dataset, name, metric, "average") for name in ("SSGRL w/ PL", "SSGRL"))
            if with_labels < without:
                says = f"SSGRL w/ PL improves on SSGRL in other metrics too ({dataset}, {metric})"
                found.append(("Analysis of HST", says, f"{with_labels} against {without}"))
    return found


def _listed(values: pd.Series, before: str = "") -> str:
    return ", ".join(f"{before}{name} has {number}" for name, number in values.items())


def share(known: str) -> str:
    return "average" if known == "average" else f"{100 * float(known):.0f} % known"
