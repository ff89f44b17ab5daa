"""The process that starts a sweep's jobs, each in a process of its own.

It imports everything once and then forks, so that a job starts at once, in memory that no job before it has
touched: one job's crash, settings and peak memory are its own. Jobs come as lines of JSON on standard input;
answers go to standard output. When the input ends, because the sweep stopped or was killed, so do all jobs.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from fewtags.errors import UserError

FORKS = sys.platform == "linux"
"""Elsewhere a fork of a process that has loaded torch is not safe: a job then pays for its own imports."""
PAUSE = 0.05
FAULT, MISTAKE = 1, 2
LONGEST_ERROR = 500


class Worker:
    def __init__(self) -> None:
        self.jobs: dict[int, int] = {}
        """process id → job id"""
        self.answers = os.dup(1)
        os.dup2(2, 1)  # whatever else is printed must not look like an answer
        self.lines = b""

    def serve(self) -> None:
        """Start and await jobs until the input ends."""
        while True:
            readable, _, _ = select.select([0], [], [], PAUSE if self.jobs else None)
            if readable and not self._read():
                return self._stop()
            self._collect()

    def _read(self) -> bool:
        """Start the jobs that have arrived; False at the end of the input."""
        arrived = os.read(0, 1 << 16)
        *complete, self.lines = (self.lines + arrived).split(b"\n")
        for line in complete:
            self._start(json.loads(line))
        return bool(arrived)

    def _start(self, job: dict[str, Any]) -> None:
        process = os.fork()
        if process == 0:
            self._be_child(job)
        self.jobs[process] = job["id"]

    def _be_child(self, job: dict[str, Any]) -> NoReturn:
        os.setsid()  # processes that load images stop with the job
        _end_with_parent()
        if FORKS:
            os._exit(run(job, self.answers))
        os.set_inheritable(self.answers, True)
        program = [sys.executable, "-m", "fewtags.benchmark.worker", str(self.answers), json.dumps(job)]
        os.execv(sys.executable, program)

    def _collect(self) -> None:
        for process in list(self.jobs):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                answer(self.answers, {"id": self.jobs.pop(process), "exit": os.waitstatus_to_exitcode(status)})

    def _stop(self) -> None:
        """Nothing is lost: checkpoints are written whole, and a job goes on from its last."""
        for process in self.jobs:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def run(job: dict[str, Any], answers: int) -> int:
    """Run one job in this process; returns the exit code. An error is told in short, and logged in full."""
    _redirect(job.get("log"))
    try:
        value = _function(job["kind"])(**job["settings"])
        answer(answers, {"id": job["id"], "value": value})
        return 0
    except UserError as mistake:
        print(f"Error: {mistake}", file=sys.stderr)
        answer(answers, {"id": job["id"], "error": str(mistake)})
        return MISTAKE
    except BaseException as fault:
        traceback.print_exc()
        answer(answers, {"id": job["id"], "error": "".join(traceback.format_exception_only(fault)).strip()})
        return FAULT
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _end_with_parent() -> None:
    """On Linux: should the process that started this one be killed, so is this one."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _function(kind: str) -> Any:
    from fewtags.benchmark import jobs

    return getattr(jobs, kind)


def _redirect(log: str | None) -> None:
    """Standard input is the sweep's, so a job has none; its output goes to the log, if it has one."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if log is not None:
        Path(log).parent.mkdir(parents=True, exist_ok=True)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for stream in (1, 2):
            os.dup2(file, stream)


def answer(answers: int, message: dict[str, Any]) -> None:
    """One line; short enough to be written at once, so that two processes' lines do not mix."""
    if "error" in message:
        message["error"] = message["error"][:LONGEST_ERROR]
    os.write(answers, json.dumps(message).encode() + b"\n")


def main() -> None:
    if len(sys.argv) > 2:  # a job of its own, where forking alone is not safe
        sys.exit(run(json.loads(sys.argv[2]), int(sys.argv[1])))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's to handle
    worker = Worker()
    if FORKS:
        import torch.utils.tensorboard  # noqa: F401  a run would import it late

        import fewtags.benchmark.jobs  # noqa: F401
    worker.serve()
    os._exit(0)  # at once: there is nothing to tidy up


if __name__ == "__main__":
    main()
