"""The published figures (Heterogeneous Semantic Transfer, its tables and its supplement) under our names.

The authors train a ResNet-101 at 448 pixels on the full data sets, and their code reports the best epoch by test
score. A figure of ours on other images or another backbone says nothing beside theirs; the order of methods may.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath

import pandas as pd

METHODS = {
    "SSGRL": "ssgrl",
    "SSGRL w/ PL": "ssgrl_pl",
    "GCN-ML": "gcn_ml",
    "KGGR": "kggr",
    "P-GCN": "p_gcn",
    "ASL": "asl",
    "CL": "curriculum",
    "Partial BCE": "partial_bce",
    "SST": "sst",
    "SARB": "sarb",
    "HST": "hst",
    "Ours": "hst",
    "HST w/ FB": "hst_fb",
    "Ours IST": "hst.intra_only",
    "Ours IST w/ stat": "hst.intra_statistical",
    "Ours IST w/o L_ist": "hst.intra_no_loss",
    "Ours CST": "hst.cross_only",
    "Ours CST w/ IL": "hst.cross_instance",
    "Ours CST w/o L_cst": "hst.cross_no_loss",
    "Ours w/ SA": "hst.sa",
}
"""The paper's name → ours."""

LEARNED = "DTL"
ABLATIONS = {
    "hst": "The whole of HST",
    "ist": "Transfer within an image",
    "cst": "Transfer across images",
    "sarl": "How category features are made",
    "feature-blending": "Feature blending",
}
"""The paper's ablation tables, by the name they have in ablations.csv."""

BACKBONE = "resnet101"


@dataclass(frozen=True)
class Dataset:
    name: str
    """As the paper calls it."""
    format: str
    """DATA's format that reads the same images and split."""
    images: int
    """Training images."""


DATASETS = {
    "coco": Dataset("MS-COCO", "coco2014", 82_783),
    "vg": Dataset("VG-200", "vg200", 98_249),
    "voc": Dataset("VOC 2007", "voc2007", 5_011),
}
"""By how a DATA of that origin begins."""


def dataset_of(data: str) -> Dataset | None:
    """The published data set that DATA is, or is a sample of; None when it is neither."""
    kind, colon, _ = data.partition(":")
    name = kind if colon else PurePosixPath(data.replace("\\", "/")).name
    return next((dataset for start, dataset in DATASETS.items() if name.lower().startswith(start)), None)


def why_not_comparable(dataset: Dataset, data: str, images: float | None, backbone: str | None) -> list[str]:
    """What differs from the paper's setting, in words; an empty list when levels may be compared."""
    reasons = []
    if data.partition(":")[0] != dataset.format:
        reasons.append(f"{data.partition(':')[0]} is not the split of {dataset.name} that the paper uses")
    if images is not None and images < 0.98 * dataset.images:  # COCO has a few hundred images without a label
        reasons.append(f"{images:,.0f} training images instead of {dataset.images:,}")
    if backbone is not None and backbone != BACKBONE:
        reasons.append(f"backbone {backbone} instead of a fine-tuned ResNet-101")
    return reasons


@cache
def read(name: str) -> pd.DataFrame:
    """One of the three files as it was copied from the paper."""
    with files("fewtags.benchmark").joinpath("paper", f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


@cache
def results() -> pd.DataFrame:
    """dataset, method (ours), metric, known (0.1 to 0.9), value in percent; averages are in `averages`."""
    table = read("results").query("known != 'average'")
    return table.assign(method=table["method"].map(METHODS), known=table["known"].astype(float))


@cache
def averages() -> pd.DataFrame:
    """dataset, method (ours), mAP, OF1, CF1 over the nine shares, of the main tables, else of the ablations'."""
    main = read("results").query("known == 'average'")
    main = main.pivot(index=["dataset", "method"], columns="metric", values="value").reset_index()
    both = pd.concat([main, read("ablations").drop(columns="table")])[["dataset", "method", "mAP", "OF1", "CF1"]]
    return both.assign(method=both["method"].map(METHODS)).groupby(["dataset", "method"]).first().reset_index()


@cache
def ablations() -> pd.DataFrame:
    """table, dataset, method (ours), label (theirs), mAP, OF1, CF1: averages over the nine shares."""
    table = read("ablations").query("table in @ABLATIONS")
    return table.assign(label=table["method"], method=table["method"].map(METHODS))


@cache
def thresholds() -> pd.DataFrame:
    """dataset, method (`hst` where it is learned, else `hst.threshold.0.1` …), known, mAP."""
    table = read("thresholds").query("known != 'average'")
    method = table["threshold"].map(lambda name: "hst" if name == LEARNED else f"hst.threshold.{name}")
    return table.assign(method=method, known=table["known"].astype(float))[["dataset", "method", "known", "mAP"]]
