"""What watches training: the audit of pseudo labels, the history and checkpoint files, and the line per epoch.

The audit is the only place that sees hidden labels. It counts; nothing flows back.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from fewtags import interrupts
from fewtags import torchvision_ops as _torchvision_ops  # noqa: F401  before Lightning imports torchvision
from fewtags.batch import Batch
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.finite import named
from fewtags.processes import together

from lightning.pytorch.callbacks import Callback, Checkpoint  # isort: skip

CHECKPOINTS_KEPT = 2
STEPS_BETWEEN_LOSSES = 10
"""The progress bar reads the loss this often: each reading waits for the device."""


class PseudoLabelAudit(Callback):
    """Counts the pseudo labels of each module and epoch, and how many of them the hidden labels confirm."""

    def __init__(self, hidden: np.ndarray | None):
        self.hidden = None if hidden is None else torch.from_numpy(hidden)
        self.counts: dict[str, Tensor] = {}

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.counts = {}

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Batch, batch_idx: int) -> None:
        for name, proposed in outputs["proposals"].items():
            self._count(f"pseudo/{name}_made", proposed.sum())
            if self.hidden is not None:
                self.hidden = self.hidden.to(proposed.device)  # once; fetching rows from the host would wait
                confirmed = self.hidden[batch.image_index] == 1
                self._count(f"pseudo/{name}_right", (proposed & confirmed).sum())

    def _count(self, name: str, value: Tensor) -> None:
        self.counts[name] = self.counts[name] + value if name in self.counts else value

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        pl_module.log_dict({name: together.total(value).float() for name, value in self.counts.items()})


class StopOnBadNumbers(Callback):
    """A loss or gradient that is not a finite number stops training, with the names of the images in the batch."""

    def __init__(self, images: tuple[str, ...]):
        self.images = images
        self.last: tuple[dict[str, Tensor], Tensor] | None = None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Batch, batch_idx: int) -> None:
        self._check()  # the step before: reading this one's loss now would wait for the device
        numbers = {"the loss": outputs["loss"].detach(), "the gradient's norm": pl_module.gradient_norm}
        self.last = {what: value for what, value in numbers.items() if value is not None}, batch.image_index

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._check()

    def _check(self) -> None:
        if self.last is None:
            return
        numbers, rows = self.last
        for what, value in numbers.items():
            if not bool(torch.isfinite(value)):
                names = named([self.images[int(row)] for row in rows])
                raise UserError(
                    f"{what} became {float(value)} on the batch with {names}: look at these images, or lower "
                    "head_lr / shortcut_lr; the run's last checkpoint is from before"
                )


class CtrlC(Callback):
    """Lightning ignores Ctrl-C once one has come; a second one has to work as before."""

    def __init__(self) -> None:
        self.before = signal.getsignal(signal.SIGINT) or signal.default_int_handler

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        interrupts.insist()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if isinstance(exception, KeyboardInterrupt):
            twice = self.before is interrupts.stop_in_order
            signal.signal(signal.SIGINT, signal.SIG_DFL if twice else self.before)


class EpochFiles(Checkpoint):
    """After each epoch: a row in history.csv and a checkpoint. The rows travel in the checkpoint too."""

    def __init__(self, run: Path, constants: dict[str, float]):
        self.run, self.constants = run, constants
        self.rows: list[dict[str, float]] = []
        self.started = time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows = list(state_dict["rows"])

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.started = time.perf_counter()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        logged = {name: float(value) for name, value in sorted(trainer.callback_metrics.items())}
        seconds = round(time.perf_counter() - self.started, 3)
        epoch = trainer.current_epoch
        self.rows = [
            *self.rows[:epoch],
            {"epoch": epoch + 1, **logged, **self.constants, "seconds": seconds},
        ]
        if together.is_writer():
            write_text(self.run / "history.csv", pd.DataFrame(self.rows).to_csv(index=False))
        trainer.save_checkpoint(checkpoint_path(self.run, epoch))  # by all processes; the first writes
        for old in checkpoints(self.run)[:-CHECKPOINTS_KEPT] if together.is_writer() else ():
            old.unlink(missing_ok=True)


def checkpoint_path(run: Path, epoch: int) -> Path:
    return run / "checkpoints" / f"epoch-{epoch + 1:04d}.safetensors"


def checkpoints(run: Path) -> list[Path]:
    """Oldest first."""
    return sorted((run / "checkpoints").glob("epoch-*.safetensors"))


class EpochLines(Callback):
    """One line per epoch, for logs and terminals that cannot redraw a progress bar."""

    def __init__(self, console: Console, files: EpochFiles):
        self.console, self.files = console, files

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.current_epoch > 0:
            self._print(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._print(trainer)

    def _print(self, trainer: Any) -> None:
        if self.files.rows:
            self.console.print(epoch_line(self.files.rows[-1], trainer.max_epochs), highlight=False)


class EpochBar(EpochLines):
    """A progress bar of the running epoch with its loss; below it, a line for each epoch that is done."""

    def __init__(self, console: Console, files: EpochFiles):
        super().__init__(console, files)
        shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.progress = Progress(*shown, console=console, transient=True)
        self.task = self.progress.add_task("", total=None)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        super().on_train_epoch_start(trainer, pl_module)
        name = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
        self.progress.reset(self.task, total=trainer.num_training_batches, description=name)
        self.progress.start()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Batch, batch_idx: int) -> None:
        self.progress.advance(self.task)
        if batch_idx % STEPS_BETWEEN_LOSSES == 0:
            name = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
            self.progress.update(self.task, description=f"{name}  loss {float(outputs['loss']):.4f}")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.progress.stop()
        super().on_train_end(trainer, pl_module)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.progress.stop()


def epoch_line(row: dict[str, float], epochs: int) -> str:
    """`epoch 3/20  loss 0.412  θ intra 0.61  filled intra 120 (83 % right)  4.1 s`."""
    parts = [f"epoch {int(row['epoch'])}/{epochs}", f"loss {row['loss/total']:.4f}"]
    for module in ("intra", "cross", "own"):
        if f"threshold/{module}" in row:
            parts.append(f"θ {module} {row[f'threshold/{module}']:.3f}")
        made = row.get(f"pseudo/{module}_made", 0)
        if made:
            right = row.get(f"pseudo/{module}_right")
            share = "" if right is None else f" ({100 * right / made:.0f} % right)"
            parts.append(f"filled {module} {int(made)}{share}")
    return "  ".join([*parts, f"{row['seconds']:.1f} s"])
