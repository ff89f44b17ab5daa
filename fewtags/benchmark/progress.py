"""What a sweep shows while it runs: a table that redraws itself on a terminal, a line per cell elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fewtags.benchmark.cells import Cell
from fewtags.benchmark.cost import Costs
from fewtags.durations import duration
from fewtags.report.words import points

FINISHED_SHOWN = 5


@dataclass
class State:
    """Where a sweep is."""

    total: int
    done: int = 0
    failed: int = 0
    waiting: deque[Cell] = field(default_factory=deque)
    running: dict[int, tuple[Cell, Path, float]] = field(default_factory=dict)
    """job → cell, run folder, when it started"""

    @property
    def ended(self) -> int:
        return self.done + self.failed


class Lines:
    """One line per cell that ends."""

    def __init__(self, console: Console, state: State):
        self.console, self.state = console, state

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: Any) -> None: ...

    def update(self) -> None: ...

    def finished(self, cell: Cell, row: Mapping[str, Any]) -> None:
        self._print(f"{cell}  mAP {points(row['mAP'])}  {duration(row['seconds'])}")

    def failed(self, cell: Cell, message: str) -> None:
        self._print(f"{cell}  failed: {message}")

    def _print(self, text: str) -> None:
        done = f"[{self.state.ended}/{self.state.total}]"
        self.console.print(f"{done} {text}", markup=False, highlight=False, soft_wrap=True)


class LiveTable(Lines):
    """done / running / left / failed, the expected end, the running cells, and the newest results."""

    def __init__(self, console: Console, state: State, costs: Costs, jobs: int, epochs: int):
        super().__init__(console, state)
        self.costs, self.jobs, self.epochs = costs, jobs, epochs
        self.newest: deque[Text] = deque(maxlen=FINISHED_SHOWN)
        self.live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> LiveTable:
        self.live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.live.stop()

    def update(self) -> None:
        self.live.update(self.picture(), refresh=True)

    def finished(self, cell: Cell, row: Mapping[str, Any]) -> None:
        self.newest.append(Text(f"{cell}  mAP {points(row['mAP'])}  {duration(row['seconds'])}"))

    def failed(self, cell: Cell, message: str) -> None:
        self.newest.append(Text(f"{cell}  failed: {message}", style="red"))

    def picture(self) -> Group:
        state = self.state
        counts = Table("done", "running", "left", "failed", "expected end")
        numbers = (state.done, len(state.running), len(state.waiting), state.failed)
        counts.add_row(*map(str, numbers), self._expected_end())
        running = Table("running", "epoch", "loss", "since")
        for cell, folder, started in state.running.values():
            epoch, loss = newest_epoch(folder)
            since = duration(time.perf_counter() - started)
            running.add_row(Text(str(cell)), f"{epoch}/{self.epochs}", loss, since)
        return Group(counts, running, *self.newest)

    def _expected_end(self) -> str:
        state = self.state
        seconds = self.costs.total([*state.waiting, *(cell for cell, _, _ in state.running.values())])
        if seconds is None:
            return "not known yet"
        spent = sum(time.perf_counter() - started for _, _, started in state.running.values())
        left = max(0.0, seconds - spent) / self.jobs
        end = datetime.now() + timedelta(seconds=left)
        return f"{end:%a %H:%M}, in {duration(left)}"


def newest_epoch(folder: Path) -> tuple[int, str]:
    """(epochs done, the last one's loss), read from the run's history."""
    try:
        first, *_, last = (folder / "history.csv").read_text(encoding="utf-8").splitlines()
        row = dict(zip(first.split(","), last.split(","), strict=True))
        return int(row["epoch"]), f"{float(row['loss/total']):.4f}"
    except (OSError, ValueError, KeyError):  # no epoch has ended yet
        return 0, ""
