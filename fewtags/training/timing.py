"""How long will it take? A few steps on a copy, so that what is trained afterwards is untouched."""

from __future__ import annotations

import copy
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import torch

from fewtags.batch import Batch
from fewtags.durations import duration
from fewtags.errors import UserError
from fewtags.methods.base import Moment
from fewtags.training.module import TrainingModule

STEPS_TIMED = 4


@dataclass(frozen=True)
class Expected:
    seconds_per_epoch: float
    peak_gib: float


def expect(
    module: TrainingModule, loader: Iterable[Batch], steps_per_epoch: int, device: torch.device
) -> Expected:
    """Time some training steps; the first is left out, it pays for warming up."""
    trial = copy.deepcopy(module).to(device).train()
    optimizer = trial.configure_optimizers()
    seconds = []
    for batch in islice(loader, STEPS_TIMED + 1):
        started = time.perf_counter()
        _step(trial, batch.to(device), optimizer)
        seconds.append(time.perf_counter() - started)
    typical = sorted(seconds[1:] or seconds)[len(seconds[1:]) // 2]
    return Expected(typical * steps_per_epoch, peak_memory_gib())


def _step(module: TrainingModule, batch: Batch, optimizer: torch.optim.Optimizer) -> None:
    last = Moment(module.recipe.epochs - 1, float(module.recipe.epochs - 1))
    terms = module.method.losses(module(batch.inputs), batch, last).terms
    torch.stack(list(terms.values())).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if batch.labels.device.type == "cuda":
        torch.cuda.synchronize()


def peak_memory_gib() -> float:
    """Largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def epochs_within(budget: float, expected: Expected, wanted: int) -> int:
    """How many epochs fit into `budget` seconds, at most `wanted`."""
    fitting = int(budget / expected.seconds_per_epoch)
    if fitting < 1:
        raise UserError(
            f"one epoch takes about {duration(expected.seconds_per_epoch)}, the budget is {duration(budget)}: "
            "raise --time-budget, or use fewer images (--limit) or a smaller network (--set feature_size=128)"
        )
    return min(fitting, wanted)
