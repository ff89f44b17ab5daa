"""The sweep's side of its jobs: start them, hear how they ended, stop them."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from fewtags.errors import UserError

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
PATIENCE = 10.0


@dataclass(frozen=True)
class Ended:
    job: int
    exit: int
    """0: well; 2: a mistake of the user's; negative: killed by this signal."""
    value: Any = None
    error: str | None = None


class Pool:
    """Jobs in processes of their own; `with Pool(threads) as pool` leaves none behind."""

    def __init__(self, threads: int):
        self.environment = os.environ | dict.fromkeys(THREADS, str(threads))
        self.process: subprocess.Popen[bytes] | None = None
        self.numbers = itertools.count()
        self.running: set[int] = set()
        self.told: dict[int, dict[str, Any]] = {}
        self.lines = b""

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, kind: str, log: Path | None = None, **settings: Any) -> int:
        """Start a function of fewtags.benchmark.jobs; returns the job's number."""
        process = self._alive()
        number = next(self.numbers)
        job = {"id": number, "kind": kind, "log": None if log is None else str(log), "settings": settings}
        assert process.stdin is not None
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        self.running.add(number)
        return number

    def wait(self, timeout: float | None = None) -> list[Ended]:
        """The jobs that ended, as soon as there is one, or none after `timeout` seconds."""
        if self.process is None or not self.running:
            return []
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        if not select.select([descriptor], [], [], timeout)[0]:
            return []
        arrived = os.read(descriptor, 1 << 16)
        if not arrived:
            return self._all_lost()
        *complete, self.lines = (self.lines + arrived).split(b"\n")
        heard = [self._hear(json.loads(line)) for line in complete]
        return [ended for ended in heard if ended is not None]

    def call(self, kind: str, **settings: Any) -> Any:
        """Run one job to its end and return its value."""
        self.start(kind, **settings)
        ended: list[Ended] = []
        while not ended:
            ended = self.wait()
        if ended[0].exit == 0:
            return ended[0].value
        raise UserError(describe(ended[0]))

    def stop(self) -> None:
        if self.process is None:
            return
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()  # the end of its input makes it stop its jobs
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.stdout.close()
        self.process, self.lines = None, b""
        self.running.clear()

    def _alive(self) -> subprocess.Popen[bytes]:
        if self.process is not None and not self.running and self.process.poll() is not None:
            self.stop()  # it ended while it had nothing to do
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fewtags.benchmark.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self.environment,
                start_new_session=True,  # so that a Ctrl-C at the terminal reaches the sweep alone
            )
        return self.process

    def _hear(self, message: dict[str, Any]) -> Ended | None:
        """A job first tells its value or error, then its exit is told."""
        number = message.pop("id")
        if "exit" not in message:
            self.told[number] = message
            return None
        self.running.discard(number)
        return Ended(number, message["exit"], **self.told.pop(number, {}))

    def _all_lost(self) -> list[Ended]:
        """The process that starts the jobs is gone, and they with it; the next job gets a new one."""
        assert self.process is not None
        code = self.process.wait()
        lost = [Ended(job, code, error="the process that starts the runs ended") for job in self.running]
        self.stop()
        return lost


def describe(ended: Ended) -> str:
    """Why a job failed, in one sentence."""
    if ended.error is not None:
        return ended.error
    if ended.exit < 0:
        hint = "; was there enough memory?" if ended.exit == -signal.SIGKILL else ""
        return f"killed by {signal.Signals(-ended.exit).name}{hint}"
    return f"ended with exit code {ended.exit}"
