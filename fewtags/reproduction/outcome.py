"""Two runs side by side: weights, metrics, thresholds and the course of training."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fewtags.training.folder import RunFolder

NOT_COMPARED = frozenset({"seconds", "training_seconds", "peak_memory_gib", "recipe_hash"})
"""Of metrics.json and history.csv: what the machine's mood decides, and what is compared as a recipe."""


@dataclass(frozen=True)
class WeightDifference:
    tensors: int
    different: int
    """Tensors that are not the same to the last bit."""
    largest: float
    """The largest difference of a number; infinite where tensors are missing or have another shape."""
    where: str
    """The tensor with the largest difference."""


@dataclass(frozen=True)
class Outcome:
    weights: WeightDifference
    metrics: dict[str, tuple[Any, Any]]
    """What differs: name → (recorded, repeated)."""
    first_epoch: int | None
    """The first epoch whose line of history.csv differs."""

    @property
    def identical(self) -> bool:
        return not self.weights.different and not self.metrics and self.first_epoch is None

    def largest_metric(self) -> tuple[str, float]:
        """The metric that differs most, and by how much; what is no number is infinitely far."""
        sizes = {name: _distance(*pair) for name, pair in self.metrics.items()}
        return max(sizes.items(), key=lambda item: item[1], default=("", 0.0))


def compare_runs(before: RunFolder, now: RunFolder) -> Outcome:
    return Outcome(compare_weights(before, now), compare_metrics(before, now), first_difference(before, now))


def compare_weights(before: RunFolder, now: RunFolder) -> WeightDifference:
    pairs = [
        (f"{part}.{name}", was.get(name), is_.get(name))
        for part in ("backbone", "method")
        for was, is_ in [(before.tensors(part), now.tensors(part))]
        for name in sorted(was.keys() | is_.keys())
    ]
    far = {name: tensor_distance(one, two) for name, one, two in pairs if not same_bits(one, two)}
    where = max(far, key=lambda name: far[name], default="")
    return WeightDifference(len(pairs), len(far), far.get(where, 0.0), where)


def same_bits(one: Tensor | None, two: Tensor | None) -> bool:
    if one is None or two is None or one.shape != two.shape or one.dtype != two.dtype:
        return False
    flat = [tensor.contiguous().flatten().view(torch.uint8) for tensor in (one, two)]
    return torch.equal(*flat)


def tensor_distance(one: Tensor | None, two: Tensor | None) -> float:
    """The largest difference of two numbers at one place."""
    if one is None or two is None or one.shape != two.shape:
        return math.inf
    far = (one.double() - two.double()).abs().nan_to_num(nan=math.inf)
    return float(far.max()) if far.numel() else 0.0


def compare_metrics(before: RunFolder, now: RunFolder) -> dict[str, tuple[Any, Any]]:
    """metrics.json, and the decision thresholds of labels.json."""
    was, is_ = (dict(flat(run.metrics())) | _thresholds(run) for run in (before, now))
    names = [name for name in was | is_ if name.split(".")[0] not in NOT_COMPARED]
    return {name: (was.get(name), is_.get(name)) for name in names if not _same(was.get(name), is_.get(name))}


def _thresholds(run: RunFolder) -> dict[str, Any]:
    labels = run.labels()
    return {
        f"decision_threshold.{name}": value
        for name, value in zip(labels.categories, labels.decision_thresholds, strict=False)
    }


def flat(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`per_category.dog.AP` for what is nested."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def first_difference(before: RunFolder, now: RunFolder) -> int | None:
    """The first epoch whose losses, thresholds or counts differ; one that is missing does."""
    was, is_ = (_history(run) for run in (before, now))
    for epoch in sorted(was.keys() | is_.keys()):
        one, two = was.get(epoch, {}), is_.get(epoch, {})
        if any(not _same(one.get(name), two.get(name)) for name in one | two):
            return epoch
    return None


def _history(run: RunFolder) -> dict[int, dict[str, float | str]]:
    path = run.path / "history.csv"
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {int(row["epoch"]): {k: _number(v) for k, v in row.items() if k not in NOT_COMPARED} for row in rows}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:  # a blank
        return text


def _same(one: Any, two: Any) -> bool:
    return one == two or (_is_nan(one) and _is_nan(two))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _distance(one: Any, two: Any) -> float:
    numbers = [isinstance(value, int | float) and not _is_nan(value) for value in (one, two)]
    return abs(one - two) if all(numbers) else math.inf
