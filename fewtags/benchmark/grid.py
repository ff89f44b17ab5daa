"""What the rows of results.csv say about one cell, one method, one setting: scores, and what is missing.

Rows may be incomplete at any time. An average over known shares is taken only over the shares that all methods of
a table have, and only over seeds that have all of those shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from fewtags.benchmark.results import KEY

UPPER_BOUND = "full_labels"
SAME = ("data", "images", "test_images", "epochs", "backbone")
"""Rows that differ in one of these are not compared."""
ORDER = (
    *("assume_absent", "plain", "partial_bce", "asl", "plain_pl", "curriculum"),
    *("gcn_ml", "p_gcn", "ssgrl", "kggr", "ssgrl_pl", "sst", "sarb", "hst", "hst_fb"),
)
"""How methods are listed: losses, a classifier's own labels, graphs, transfer."""


@dataclass(frozen=True)
class Score:
    """Over seeds."""

    mean: float
    std: float | None
    """None with one seed."""
    seeds: int


@dataclass(frozen=True)
class Setting:
    """Rows that may be compared: the same data, images, epochs and backbone."""

    data: str
    images: float | None
    test_images: float | None
    epochs: float | None
    backbone: str | None
    rows: pd.DataFrame

    @property
    def key(self) -> tuple[object, ...]:
        return (self.data, self.images, self.test_images, self.epochs, self.backbone)

    @property
    def title(self) -> str:
        facts = [
            "" if self.images is None else f"{self.images:,.0f} training images",
            "" if self.epochs is None else f"{self.epochs:.0f} epochs",
            self.backbone or "",
        ]
        return ": ".join(filter(None, [self.data, ", ".join(filter(None, facts))]))

    @property
    def seeds(self) -> list[int]:
        return sorted(int(seed) for seed in self.rows["seed"].unique())

    def methods(self, variants: bool = False) -> list[str]:
        """Those with a row, in the order of `ORDER`; the upper bound is not among them."""
        found = {name for name in self.rows["method"].unique() if name != UPPER_BOUND}
        return in_order(name for name in found if variants or "." not in name)


def in_order(methods: Iterable[str]) -> list[str]:
    place = {name: index for index, name in enumerate(ORDER)}
    return sorted(methods, key=lambda name: (place.get(name, len(place)), name))


def settings(results: pd.DataFrame) -> list[Setting]:
    """The settings of a table of results, for each data set the one with most rows first."""
    rows = results.drop_duplicates([*KEY, *SAME[1:]], keep="last")
    rows = rows.assign(known=rows["known"].astype(float).round(4))
    found = [_setting(values, part) for values, part in rows.groupby(list(SAME), dropna=False, sort=False)]
    first = {name: place for place, name in enumerate(dict.fromkeys(rows["data"]))}
    return sorted(found, key=lambda setting: (first[setting.data], -len(setting.rows)))


def _setting(values: Sequence, rows: pd.DataFrame) -> Setting:
    data, images, test_images, epochs, backbone = (None if pd.isna(value) else value for value in values)
    return Setting(str(data), images, test_images, epochs, backbone, rows)


def main_settings(results: pd.DataFrame) -> list[Setting]:
    """One per data set: the setting with most rows. Smaller ones (one larger run, say) stand apart."""
    return list({setting.data: setting for setting in reversed(settings(results))}.values())[::-1]


def known_shares(rows: pd.DataFrame, methods: Sequence[str]) -> list[float]:
    """The shares at which any of the methods was run."""
    return sorted(float(share) for share in rows[rows["method"].isin(methods)]["known"].unique())


def shared_shares(rows: pd.DataFrame, methods: Sequence[str], metric: str = "mAP") -> list[float]:
    """The shares at which every one of the methods has a figure."""
    scored = rows.dropna(subset=metric)
    sets = [set(scored[scored["method"] == method]["known"]) for method in methods]
    return sorted(float(share) for share in set.intersection(*sets)) if sets else []


def shared_seeds(rows: pd.DataFrame, methods: Sequence[str], shares: Sequence[float]) -> list[int]:
    """The seeds that every one of the methods has at every one of the shares."""
    done = set(rows[["method", "known", "seed"]].itertuples(index=False, name=None))
    wanted = [(method, known) for method in methods for known in shares]
    return [seed for seed in sorted(rows["seed"].unique()) if all((*cell, seed) in done for cell in wanted)]


def score(rows: pd.DataFrame, method: str, known: float, metric: str = "mAP") -> Score | None:
    """Mean and standard deviation over the seeds done; None without any."""
    return _score(rows[metric][(rows["method"] == method) & (rows["known"] == known)].dropna())


def upper_bound(rows: pd.DataFrame, metric: str = "mAP") -> Score | None:
    """What the same model reaches with nothing hidden."""
    return _score(rows[metric][rows["method"] == UPPER_BOUND].dropna())


def average(rows: pd.DataFrame, method: str, shares: Sequence[float], metric: str = "mAP") -> Score | None:
    """Each seed's mean over these shares, then mean and deviation over the seeds that have all of them."""
    own = rows.loc[(rows["method"] == method) & rows["known"].isin(shares), ["seed", metric]].dropna()
    per_seed = own.groupby("seed")[metric].agg(["mean", "size"])
    return _score(per_seed["mean"][per_seed["size"] == len(shares)])


def _score(values: pd.Series) -> Score | None:
    if not len(values):
        return None
    numbers = values.astype(float)
    return Score(float(numbers.mean()), float(numbers.std()) if len(numbers) > 1 else None, len(numbers))


def missing(setting: Setting) -> dict[str, list[tuple[float, list[int]]]]:
    """method → the shares and seeds that other methods of its kind have and it has not."""
    found: dict[str, list[tuple[float, list[int]]]] = {}
    for methods in (setting.methods(), [name for name in setting.methods(True) if "." in name]):
        for method in methods:
            gaps = [
                (share, lacking)
                for share in _expected(setting.rows, method, methods)
                if (lacking := _lacking(setting, method, share))
            ]
            if gaps:
                found[method] = gaps
    return found


def _expected(rows: pd.DataFrame, method: str, methods: Sequence[str]) -> list[float]:
    """Methods are expected at every share of any of them; variants only where they were begun."""
    return known_shares(rows, [method] if "." in method else methods)


def _lacking(setting: Setting, method: str, share: float) -> list[int]:
    rows = setting.rows
    done = set(rows["seed"][(rows["method"] == method) & (rows["known"] == share) & rows["mAP"].notna()])
    return [seed for seed in setting.seeds if seed not in done]
