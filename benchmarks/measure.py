"""One case in this process: seconds a step, and the most memory it took above what was there before the first.

`python -m benchmarks.measure CASE LIMIT PATIENCE` is what `bench` starts: a case as JSON, bytes, seconds.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from benchmarks.cases import Case

MOST_STEPS = 9
MARK = "measured: "
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"
NO_MEMORY = ("can't allocate memory", "could not allocate", "std::bad_alloc", "cannot allocate memory")


@dataclass(frozen=True)
class Measured:
    status: Literal["ok", "does not fit"]
    seconds: float | None = None
    """Median over the steps."""
    peak_bytes: int | None = None
    loss: float | None = None
    steps: int = 0


def measure(case: Case, limit_bytes: int, patience: float) -> Measured:
    """One step to warm up, then at least one, and more within `patience` seconds."""
    from benchmarks.contenders import make_step

    try:
        step = make_step(case)
        limit_memory(limit_bytes)
        before = start_peak()
        loss = float(step())
        seconds = timed(step, patience)
    except (RuntimeError, MemoryError) as problem:
        if not is_about_memory(problem):
            raise
        return Measured("does not fit")
    assert math.isfinite(loss), f"{case.name}: the loss is {loss}"
    return Measured("ok", median(seconds), peak() - before, loss, len(seconds))


def timed(step: Callable[[], object], patience: float) -> list[float]:
    """Seconds of each step."""
    seconds: list[float] = []
    while not seconds or (sum(seconds) < patience and len(seconds) < MOST_STEPS):
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)
    return seconds


def is_about_memory(problem: BaseException) -> bool:
    return isinstance(problem, MemoryError) or any(words in str(problem).lower() for words in NO_MEMORY)


def limit_memory(more_bytes: int) -> None:
    """From here on this process may map so much more; then torch says that memory is short, and nothing swaps."""
    most = status_bytes("VmSize") + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def start_peak() -> int:
    """Give free memory back, begin a new high-water mark, and say what is in use now."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    CLEAR.write_text(RESET_PEAK)
    return status_bytes("VmRSS")


def peak() -> int:
    """The high-water mark since `start_peak`."""
    return status_bytes("VmHWM")


def status_bytes(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return 1024 * int(line.split()[1])


def available_bytes() -> int:
    """What this machine could give to one more process without swapping."""
    line = next(
        line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:")
    )
    return 1024 * int(line.split()[1])


if __name__ == "__main__":
    found = measure(Case(**json.loads(sys.argv[1])), int(sys.argv[2]), float(sys.argv[3]))
    print(MARK + json.dumps(asdict(found)))
