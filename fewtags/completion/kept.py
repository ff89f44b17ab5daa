"""What a run folder keeps for completing labels, under RUN/completion/:

heldout.parquet: image, category, label, logit, plain, intra, cross of each known label held out of training;
gallery.parquet: features of images where a category is known present, to name the most similar ones;
scale.json: what puts evidence of all categories on one scale.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.completion.calibration import Entries, Scale, scale_of
from fewtags.completion.evidence import look
from fewtags.errors import UserError
from fewtags.files import whole_file, write_text
from fewtags.labels.table import COMPLETED, LabelTable
from fewtags.methods.base import Method
from fewtags.processes import together
from fewtags.untrusted import read_json

FOLDER = "completion"
MOST_A_CATEGORY = 200
"""Known images kept per category, a random sample."""
PRUNE_FROM = 50_000


@dataclass(frozen=True)
class HeldOut:
    """M known labels that were unknown to training everywhere."""

    image: list[str]
    present: np.ndarray
    """(M,) bool"""
    entries: Entries


@dataclass(frozen=True)
class Gallery:
    """Unit features (C, G, D) of images where the category is known present, zero where there are fewer."""

    features: Tensor
    images: np.ndarray
    """(C, G) str"""


@dataclass(frozen=True)
class Kept:
    held: HeldOut
    scale: Scale
    gallery: Gallery | None


class Keeper:
    """Collects, on one walk over the training images, what completing will need."""

    def __init__(self, method: Method, table: LabelTable, held_out: np.ndarray | None, seed: int):
        self.method, self.table, self.held_out = method, table, _given_only(table, held_out)
        shape = table.values.shape
        self.logits, self.plain, self.intra, self.cross = (np.full(shape, np.nan, np.float32) for _ in range(4))
        self.gallery: list[tuple[np.ndarray, ...]] = []
        self.generator = np.random.default_rng((seed, 31, together.rank()) if together.rank() else (seed, 31))

    def walk(self, batches: Iterable[tuple[Batch, dict[str, Tensor]]]) -> Keeper:
        for batch, outputs in batches:
            seen = look(self.method, outputs, batch.labels)
            rows = batch.image_index.cpu().numpy()
            self.logits[rows], self.plain[rows] = seen.logits, seen.plain
            self.intra[rows], self.cross[rows] = seen.intra, seen.cross
            if seen.features is not None:
                self._add(seen.features, batch.labels, rows)
        self._gather()
        return self

    def _gather(self) -> None:
        """What all processes have seen, each on its share of the walk."""
        if together.size() == 1:
            return
        share = together.own_share(len(self.table))
        arrays = (self.logits, self.plain, self.intra, self.cross)
        self.logits, self.plain, self.intra, self.cross = (
            together.all_array_rows(array[share.start : share.stop]) for array in arrays
        )
        own = [_pruned(self.gallery)] if self.gallery else []
        self.gallery = [part for parts in together.said_by_all(own) for part in parts]

    def _add(self, features: Tensor, labels: Tensor, rows: np.ndarray) -> None:
        image, category = torch.nonzero(labels == 1, as_tuple=True)
        chosen = features[image, category].half().cpu().numpy()
        key = self.generator.random(len(chosen))
        self.gallery.append((key, category.cpu().numpy(), rows[image.cpu().numpy()], chosen))
        if sum(len(part[0]) for part in self.gallery) > PRUNE_FROM + MOST_A_CATEGORY * labels.shape[1]:
            self.gallery = [_pruned(self.gallery)]

    def write(self, run: Path) -> None:
        known, unknown = self.table.values != 0, self.table.values == 0
        scale = scale_of(
            (self.table.values == 1).sum(0),
            known.sum(0),
            np.where(unknown, self.intra, np.nan),
            np.where(unknown, self.cross, np.nan),
        )
        fields = {name: np.asarray(value).tolist() for name, value in dataclasses.asdict(scale).items()}
        write_text(run / FOLDER / "scale.json", json.dumps(fields))
        with whole_file(run / FOLDER / "heldout.parquet") as draft:
            self._held_out().to_parquet(draft, index=False)
        with whole_file(run / FOLDER / "gallery.parquet") as draft:
            self._gallery().to_parquet(draft, index=False)

    def _held_out(self) -> pd.DataFrame:
        row, category = np.nonzero(self.held_out)
        columns = {
            "image": np.array(self.table.images, dtype=object)[row],
            "category": category,
            "label": self.held_out[row, category],
            "logit": self.logits[row, category],
            "plain": self.plain[row, category],
            "intra": self.intra[row, category],
            "cross": self.cross[row, category],
        }
        return pd.DataFrame(columns)

    def _gallery(self) -> pd.DataFrame:
        if not self.gallery:
            return pd.DataFrame({"image": [], "category": [], "feature": []})
        _, category, row, features = _pruned(self.gallery)
        images = np.array(self.table.images, dtype=object)[row]
        packed = [feature.tobytes() for feature in features]
        return pd.DataFrame({"image": images, "category": category, "feature": packed})


def _given_only(table: LabelTable, held_out: np.ndarray | None) -> np.ndarray:
    """(n, C): held-out labels without those that were completed: a model must not be judged by its own guesses."""
    if held_out is None:
        return np.zeros_like(table.values)
    if table.source is None:
        return held_out
    return np.where(table.source == COMPLETED, 0, held_out).astype(np.int8)


def _pruned(parts: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """The MOST_A_CATEGORY entries of each category with the smallest keys, ordered by category."""
    key, category, *rest = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((key, category))
    starts = np.searchsorted(category[order], category[order])
    kept = order[np.arange(len(order)) - starts < MOST_A_CATEGORY]
    return tuple(column[kept] for column in (key, category, *rest))


def read_kept(run: Path, categories: int | None = None) -> Kept:
    """`categories`: as many as the model has; None: as many as it says itself."""
    folder = Path(run) / FOLDER
    if not (folder / "scale.json").is_file():
        raise UserError(
            f"{run}: keeps nothing for completing labels ({folder} is missing): it was not trained to its end, "
            "or by an older version; train it again"
        )
    try:
        held, gallery = (pd.read_parquet(folder / f"{name}.parquet") for name in ("heldout", "gallery"))
        fields = read_json(folder / "scale.json")
        rate, mean, spread = (np.array(fields[name], float) for name in ("rate", "cross_mean", "cross_spread"))
        scale = Scale(rate, mean, spread, float(fields["intra_mean"]))
        count = len(rate) if categories is None else categories
        _require({rate.shape, mean.shape, spread.shape} == {(count,)}, f"scale.json is not of {count} categories")
        return Kept(_read_held_out(held, count), scale, _read_gallery(gallery, count))
    except (OSError, ValueError, LookupError, TypeError, NotImplementedError) as problem:
        raise UserError(f"{folder}: damaged or not written by fewtags: {problem}") from problem


def _require(holds: object, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _read_held_out(table: pd.DataFrame, categories: int) -> HeldOut:
    table = table if "plain" in table else table.assign(plain=np.nan)  # of a version before there was one
    columns = (table[name].to_numpy(np.float32) for name in ("logit", "plain", "intra", "cross"))
    entries = Entries(table["category"].to_numpy(np.int64), *columns)
    _require(entries.category.max(initial=-1) < categories, "heldout.parquet names a category that is not there")
    _require(entries.category.min(initial=0) >= 0, "heldout.parquet names a category that is not there")
    scores = np.isfinite(entries.logit).all() and not np.isinf(entries.plain).any()
    _require(scores, "heldout.parquet holds a score that is not a finite number")
    return HeldOut(table["image"].tolist(), table["label"].to_numpy() == 1, entries)


def _read_gallery(table: pd.DataFrame, categories: int) -> Gallery | None:
    if table.empty:
        return None
    vectors = np.stack([np.frombuffer(packed, np.float16) for packed in table["feature"]]).astype(np.float32)
    category = table["category"].to_numpy(np.int64)
    _require((np.diff(category) >= 0).all(), "gallery.parquet is not in the order of its categories")
    _require(category[0] >= 0 and category[-1] < categories, "gallery.parquet names a category that is not there")
    slot = np.arange(len(table)) - np.searchsorted(category, category)
    _require(slot.max() < MOST_A_CATEGORY, f"gallery.parquet holds more than {MOST_A_CATEGORY} of a category")
    features = np.zeros((categories, int(slot.max()) + 1, vectors.shape[1]), np.float32)
    images = np.full(features.shape[:2], "", dtype=object)
    features[category, slot], images[category, slot] = vectors, table["image"].to_numpy(object)
    return Gallery(torch.from_numpy(features), images)
