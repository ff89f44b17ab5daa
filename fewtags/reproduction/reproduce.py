"""`fewtags reproduce RUN`: train it again from what it recorded, and say what came out differently."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from fewtags.data import open_for
from fewtags.errors import UserError
from fewtags.reproduction.inputs import Inputs, as_recorded, compare_inputs
from fewtags.reproduction.outcome import Outcome, compare_runs
from fewtags.reproduction.record import read_record
from fewtags.training.folder import RunFolder
from fewtags.training.run import train

SCORES = ("mAP", "OF1", "CF1")
"""What a tolerance is about."""


@dataclass(frozen=True)
class Report:
    inputs: Inputs
    outcome: Outcome | None
    """None: it was not trained again."""
    tolerance: float = 0.0

    @property
    def reproduced(self) -> bool | None:
        """None: nothing speaks against it, but it was not trained again."""
        if self.outcome is None:
            return None if self.inputs.same else False
        return self.inputs.same and self.same_result

    @property
    def same_result(self) -> bool:
        """Every bit, or with a tolerance the scores."""
        if self.outcome is None:
            return False
        return self.outcome.identical or (self.tolerance > 0 and score_gap(self.outcome) <= self.tolerance)

    def as_json(self) -> dict[str, Any]:
        outcome = self.outcome
        repeated = outcome and {
            "identical": outcome.identical,
            "tensors": outcome.weights.tensors,
            "different_tensors": outcome.weights.different,
            "largest_weight_difference": outcome.weights.largest,
            "metrics": {name: list(pair) for name, pair in outcome.metrics.items()},
            "first_different_epoch": outcome.first_epoch,
        }
        inputs = self.inputs
        different = {"data": inputs.data, "recipe": inputs.recipe, "environment": inputs.environment}
        return {"reproduced": self.reproduced, "recorded": inputs.recorded, **different, "repeated": repeated}


def reproduce(
    run: Path,
    data: str | None = None,
    out: Path | None = None,
    *,
    train_again: bool = True,
    anyway: bool = False,
    new_features: bool = False,
    tolerance: float = 0.0,
    console: Console,
) -> Report:
    """Compare what goes in; if it is the same (or `anyway`), train again and compare what comes out.

    `new_features`: compute those of a frozen backbone anew, instead of reading what the cache has.
    """
    before = RunFolder(run)
    recipe, labels, record = before.recipe(), before.labels(), read_record(run)
    _check_complete(before)
    spec = data or labels.data
    opened = open_for(recipe, spec, labels.tokens, keep_sparse=True)
    inputs = compare_inputs(run, recipe, record, opened)
    if not train_again or not (inputs.same or anyway):
        return Report(inputs, None, tolerance)
    with ExitStack() as scratch:
        folder = out or Path(scratch.enter_context(tempfile.TemporaryDirectory(prefix="fewtags-"))) / "run"
        if new_features:
            scratch.enter_context(empty_cache())
        init = None if record is None else record.init
        again = train(
            spec,
            as_recorded(recipe, record),
            folder,
            tokens=labels.tokens,
            init=init,
            console=console,
            opened=opened,
        )
        return Report(inputs, compare_runs(before, again), tolerance)


def _check_complete(run: RunFolder) -> None:
    if not run.is_complete():
        raise UserError(f"{run.path}: its training has not finished; continue it with `fewtags train --resume`")


def score_gap(outcome: Outcome) -> float:
    """The largest difference among the scores, in percent points."""
    pairs = [outcome.metrics[name] for name in SCORES if name in outcome.metrics]
    numbers = [abs(one - two) if None not in (one, two) else float("inf") for one, two in pairs]
    return max(numbers, default=0.0)


@contextmanager
def empty_cache() -> Iterator[None]:
    """Features are computed anew, into a folder that goes away again."""
    name = "FEWTAGS_CACHE"
    before = os.environ.get(name)
    with tempfile.TemporaryDirectory(prefix="fewtags-cache-") as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            os.environ.pop(name)
            if before is not None:
                os.environ[name] = before
