"""A run folder as the report reads it. Only metrics.json is required; what is missing is left out of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fewtags import plain_yaml
from fewtags.errors import UserError
from fewtags.report.checked import Examples, Labels, Metrics, Settings, checked, read_checked
from fewtags.untrusted import refuse_links_outside

SPELLINGS = {
    "hst": "HST",
    "hst_fb": "HST + blending",
    "sst": "SST",
    "sarb": "SARB",
    "ssgrl": "SSGRL",
    "ssgrl_pl": "SSGRL + own labels",
    "plain_pl": "plain + own labels",
    "asl": "ASL",
    "gcn_ml": "GCN-ML",
    "kggr": "KGGR",
    "p_gcn": "P-GCN",
    "assume_absent": "assume absent",
    "full_labels": "full labels",
}


@dataclass(frozen=True)
class Run:
    path: Path
    name: str
    """How the report calls it: the method, with the seed or folder when several runs share one."""
    metrics: dict[str, Any]
    recipe: dict[str, Any]
    history: pd.DataFrame
    """One row per epoch; empty when nothing was logged."""
    labels: dict[str, Any]
    examples: dict[str, Any]
    """examples/examples.json, or {}."""

    @property
    def method(self) -> str:
        return str(self.metrics.get("method") or self.recipe.get("method") or self.path.name)

    @property
    def known(self) -> float | None:
        """Share of the labels that training could see."""
        known = self.metrics.get("known", self.recipe.get("known"))
        return None if known is None else float(known)

    @property
    def seed(self) -> int | None:
        return self.metrics.get("seed", self.recipe.get("seed"))

    @property
    def seconds(self) -> float | None:
        if self.metrics.get("seconds") is not None:
            return float(self.metrics["seconds"])
        return float(self.history["seconds"].sum()) if "seconds" in self.history else None

    @property
    def map(self) -> float | None:
        return self.metrics.get("mAP")

    def series(self, column: str) -> pd.Series:
        """A column of the history indexed by epoch, without the epochs that lack it; empty when there is none."""
        if column not in self.history:
            return pd.Series(dtype=float)
        values = pd.to_numeric(self.history[column], errors="coerce")
        return pd.Series(values.to_numpy(), index=self.history["epoch"].to_numpy()).dropna()

    def loss_terms(self) -> list[str]:
        return [name for name in map(str, self.history.columns) if name.startswith("loss/")]


def read_run(path: Path) -> Run:
    path = Path(path)
    if not (path / "metrics.json").is_file():
        raise UserError(f"{path}: no metrics.json in it; give the folder of a finished run (or train it first)")
    refuse_links_outside(path)
    run = Run(
        path=path,
        name=path.name,
        metrics=read_checked(path / "metrics.json", Metrics),
        recipe=_yaml(path / "recipe.yaml"),
        history=_history(path / "history.csv"),
        labels=read_checked(path / "labels.json", Labels),
        examples=read_checked(path / "examples" / "examples.json", Examples),
    )
    return replace(run, name=SPELLINGS.get(run.method, run.method))


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Several runs, told apart in name: by seed where that is what differs, else by folder."""
    runs = [read_run(path) for path in paths]
    seeds = [f"{run.name} (seed {run.seed})" for run in runs]
    folders = [f"{run.name} ({run.path.name})" for run in runs]
    shared = {name for name, count in Counter(run.name for run in runs).items() if count > 1}
    distinct = seeds if len(set(seeds)) == len(runs) else folders
    return [
        replace(run, name=name) if run.name in shared else run for run, name in zip(runs, distinct, strict=True)
    ]


def _yaml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    content = plain_yaml.read(path)
    return checked(content, path, Settings) if isinstance(content, dict) else {}


def _history(path: Path) -> pd.DataFrame:
    if not path.is_file() or path.stat().st_size == 0:
        return pd.DataFrame({"epoch": pd.Series(dtype=int)})
    try:
        history = pd.read_csv(path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as problem:
        raise UserError(f"{path}: not readable as CSV: {problem}") from problem
    if "epoch" not in history:
        history.insert(0, "epoch", range(1, len(history) + 1))
    for name in {"epoch", "seconds"} & set(history):
        if not pd.api.types.is_numeric_dtype(history[name]):
            raise UserError(f"{path}: column {name}: holds something that is no number; the file is damaged")
    return history
