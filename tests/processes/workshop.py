"""Runs tasks in 1, 2 and 4 processes, for the tests: torch is imported once, then each process is a fork.

`python -m tests.processes.workshop FOLDER [TASK...]`: what process R of N found in TASK is FOLDER/TASK-N-R.pt.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from fewtags.processes import meeting, together
from fewtags.processes.launch import free_port
from fewtags.transfer import threshold_fit
from tests.processes import tasks

DEADLINE = 900


def place(rank: int, size: int, port: int) -> dict[str, str]:
    """The variables of torchrun; with four processes those of Slurm, on two nodes."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    if size == 4:
        return common | {
            "SLURM_PROCID": str(rank),
            "SLURM_NTASKS": "4",
            "SLURM_LOCALID": str(rank % 2),
            "SLURM_NNODES": "2",
        }
    return common | {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank)}


def work(rank: int, size: int, port: int, folder: Path) -> None:
    """One process: join the others, do the tasks."""
    torch.set_num_threads(1)
    threshold_fit.FIT_STEPS = 5  # as good as 300 to see whether all processes do the same
    warnings.filterwarnings("ignore", message=".broadcast_buffers. is deprecated")
    if size > 1:
        os.environ.update(place(rank, size, port))
        writer = meeting.meet(*((2, 2) if size == 4 else (None, None)), device="cpu")
        assert (writer, together.size(), together.rank()) == (rank == 0, size, rank)
    for name, task in TASKS.items():
        started = time.perf_counter()
        torch.save(task(folder), folder / f"{name}-{size}-{rank}.pt")
        print(f"{name} {rank}/{size} {time.perf_counter() - started:.1f} s", flush=True)
        together.wait_for_all()
    meeting.part()


TASKS: dict[str, Callable[[Path], object]] = {
    "functions": tasks.functions,
    "steps": tasks.steps,
    "options": tasks.options,
    "cache": tasks.cache,
    "runs": tasks.runs,
    "uses": tasks.uses,
    "commands": tasks.commands,
}


def run_all(size: int, folder: Path) -> None:
    port, children = free_port(), []
    for rank in range(size):
        if child := os.fork():
            children.append(child)
            continue
        code = 1
        try:
            work(rank, size, port, folder)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    _wait(children)


def _wait(children: list[int]) -> None:
    """The first that fails ends all."""
    left, deadline = set(children), time.monotonic() + DEADLINE
    while left:
        for child in list(left):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                left.discard(child)
            if (ended and status) or time.monotonic() > deadline:
                for other in left:
                    os.kill(other, 9)
                sys.exit(f"process {child} ended with {status}" if ended else "too slow")
        time.sleep(0.02)


if __name__ == "__main__":
    chosen = sys.argv[2:] or list(TASKS)
    TASKS = {name: TASKS[name] for name in chosen}
    for size in (1, 2, 4):
        run_all(size, Path(sys.argv[1]))
