"""Processes of `fewtags` that start at once: a warm process has imported everything, and forks one per command.

A fresh interpreter would spend seconds importing before there is anything to kill. `Nursery` is the tests' side;
run as a module this file is the warm process. It reads jobs as lines of JSON and answers in the same way.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 120.0
LOOK_EVERY = 0.005
HALF, WHOLE, MOVED = "half", "whole", "moved"


@dataclass
class Job:
    nursery: Nursery
    pid: int
    log: Path
    started: float
    code: int | None = None

    def wait(self, timeout: float = LONGEST) -> int | None:
        """The exit code, negative for a signal; None: it still runs."""
        if self.code is None:
            self.code = self.nursery.ask({"wait": self.pid, "timeout": timeout})
        return self.code

    def finish(self) -> int:
        code = self.wait()
        assert code is not None, f"no end after {LONGEST} s: {self.said()}"
        return code

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, signal_number)

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def writes(self) -> int:
        """How many files a command that has ended had written."""
        return int(Path(f"{self.log}.writes").read_text())


class Nursery:
    def __init__(self) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.nursery"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes)

    def start(
        self,
        arguments: Sequence[Any],
        log: Path,
        environment: dict[str, str],
        errors: Path | None = None,
        cwd: Path | None = None,
        die: tuple[int, str] | None = None,
        stops_slowly: bool = False,
    ) -> Job:
        """`fewtags ARGUMENTS` in a process of its own; `errors`: where it writes what does not go to the log.

        `die`: it kills itself at its n-th write of a file.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        job = {"arguments": [*map(str, arguments)], "log": str(log), "errors": str(errors or log), "die": die}
        job |= {"environment": os.environ | environment, "cwd": str(cwd or ROOT), "stops_slowly": stops_slowly}
        return Job(self, self.ask(job), log, time.perf_counter())

    def ask(self, question: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(LONGEST)


def serve() -> None:
    """The warm process."""
    _import_everything()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = _wait(asked["wait"], asked["timeout"]) if "wait" in asked else _fork(asked)
        print(json.dumps(answer), file=answers, flush=True)
    os._exit(0)


def _import_everything() -> None:
    import matplotlib.pyplot  # noqa: F401
    import pandas.io.formats.csvs  # noqa: F401
    import torch.utils.tensorboard  # noqa: F401
    import uvicorn.protocols.http.auto  # noqa: F401

    import fewtags.benchmark.dry_run
    import fewtags.benchmark.jobs
    import fewtags.benchmark.suites
    import fewtags.benchmark.sweep
    import fewtags.benchmark.terminal
    import fewtags.completion.complete
    import fewtags.report.benchmark_page
    import fewtags.review.app
    import fewtags.review.start
    import fewtags.training.examples
    import fewtags.training.run  # noqa: F401

    Image.init()
    _draw_once()


def _draw_once() -> None:
    """Fonts are looked for once."""
    from io import BytesIO

    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().set_title("warm")
    figure.savefig(BytesIO(), format="svg")


def _wait(pid: int, timeout: float) -> int | None:
    until = time.perf_counter() + timeout
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.perf_counter() > until:
            return None
        time.sleep(LOOK_EVERY)


def _fork(job: dict[str, Any]) -> int:
    sys.stdout.flush()
    pid = os.fork()
    return pid or _be_command(job)


def _be_command(job: dict[str, Any]) -> NoReturn:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(_emptied(job["log"]), 1)
    os.dup2(1 if job["errors"] == job["log"] else _emptied(job["errors"]), 2)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["cwd"])
    _fork_workers_of_sweeps()
    moved = moves_counted(*(job["die"] or (0, "")))
    if job["stops_slowly"]:
        _stop_slowly()
    code = _run(job["arguments"])
    Path(f"{job['log']}.writes").write_text(str(len(moved)))
    os._exit(code)


def _emptied(file: str) -> int:
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)


def _run(arguments: list[str]) -> int:
    from fewtags import cli

    sys.argv = ["fewtags", *arguments]
    try:
        cli.main()
        return 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


class ForkedWorker:
    """The process that starts a sweep's jobs, forked too instead of started with all its imports."""

    def __init__(self, environment: dict[str, str]):
        jobs_out, jobs_in = os.pipe()
        answers_out, answers_in = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(jobs_out, 0)
            os.dup2(answers_in, 1)
            for end in (jobs_out, jobs_in, answers_out, answers_in):
                os.close(end)
            _be_worker()
        os.close(jobs_out)
        os.close(answers_in)
        self.stdin, self.stdout = os.fdopen(jobs_in, "wb"), os.fdopen(answers_out, "rb")

    def poll(self) -> int | None:
        return _wait(self.pid, 0)

    def wait(self, timeout: float = LONGEST) -> int | None:
        return _wait(self.pid, timeout)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _be_worker() -> NoReturn:
    from fewtags.benchmark.worker import Worker

    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Worker().serve()
    os._exit(0)


def _fork_workers_of_sweeps() -> None:
    from fewtags.benchmark.pool import Pool

    def alive(pool: Any) -> ForkedWorker:
        pool.process = pool.process or ForkedWorker(pool.environment)
        return pool.process

    Pool._alive = alive


def _stop_slowly() -> None:
    """After a first Ctrl-C, training takes for ever to stop."""
    from fewtags.training.callbacks import EpochLines

    EpochLines.on_exception = lambda *_: time.sleep(LONGEST)


def moves_counted(deadly: int, moment: str) -> list[str]:
    """The files that are moved to their names. At the deadly one the process is killed.

    `moment`: the draft is then half written, whole, or has been moved.
    """
    move, moved, owner = os.replace, [], os.getpid()

    def replace(source: Any, target: Any) -> None:
        moved.append(str(target))
        if len(moved) != deadly or os.getpid() != owner:  # jobs of a sweep are forked from it, and go on
            return move(source, target)
        if moment == HALF and Path(source).is_file():
            os.truncate(source, os.path.getsize(source) // 2)
        if moment == MOVED:
            move(source, target)
        os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace
    return moved


if __name__ == "__main__":
    serve()
