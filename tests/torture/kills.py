"""Kill a command again and again until it has ended well, and look at everything it leaves on the way."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests import nursery
from tests.torture.cases import Case
from tests.torture.files_left import files, passing, unreadable

MOST_KILLS_OF_ONE_RUN = 5
MOMENTS = (nursery.HALF, nursery.WHOLE, nursery.MOVED)


@dataclass
class Tally:
    """What happened to one command."""

    command: str
    seconds: float = 0.0
    """Of the undisturbed run."""
    kills: int = 0
    at_a_write: int = 0
    runs: int = 0
    """Brought to their end after at least one kill."""
    files: int = 0
    """Looked at after kills."""
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Calm:
    """A run that nobody kills: what has to come out, and when there is something to kill."""

    results: dict[str, Any]
    window: tuple[float, float]
    seconds: float
    writes: int


def undisturbed(case: Case, place: Path) -> Calm:
    job = case.start(place)
    window = case.window(place, job)
    code = case.end(job, set())
    seconds = time.perf_counter() - job.started
    assert code == case.ends_with, job.said()
    assert not unreadable(place)
    writes = job.writes()
    return Calm(case.results(place), window or (0.0, seconds), seconds, writes)


def torture(case: Case, folder: Path, kills: int, seed: int) -> Tally:
    """So many kills, spread over as many runs as that takes."""
    rng = np.random.default_rng(seed)
    calm = undisturbed(case, folder / "undisturbed")
    tally = Tally(case.name, calm.seconds)
    while tally.kills < kills and not tally.faults:
        place = folder / f"{tally.runs}"
        try:
            one_run(case, place, calm, min(MOST_KILLS_OF_ONE_RUN, kills - tally.kills), rng, tally)
            shutil.rmtree(place)
        except AssertionError as fault:
            tally.faults.append(f"{case.name}, {place}: {fault}")
        tally.runs += 1
    return tally


def one_run(case: Case, place: Path, calm: Calm, kills: int, rng: np.random.Generator, tally: Tally) -> None:
    """Kill, look, go on; then let it end and compare."""
    kept: set[int] = set()
    far = 0
    for _ in range(kills):
        if not killed(case, place, calm, kept, rng, tally):
            break
        far = look(case, place, far, kept, tally)
    job = case.start(place)
    code = case.end(job, kept)
    assert code == case.ends_with, f"it ended with {code}: {job.said()}"
    assert not case.done_again(job, far), case.done_again(job, far)
    assert not unreadable(place), unreadable(place)
    assert not passing(place), f"left behind: {passing(place)}"
    assert case.results(place) == calm.results, "other results than undisturbed"


def killed(case: Case, place: Path, calm: Calm, kept: set[int], rng: np.random.Generator, tally: Tally) -> bool:
    """Start it and kill it: at the writing of a file, or at a moment. False: it ended before."""
    at_a_write = bool(rng.random() < case.at_writes)
    if at_a_write:
        job = case.start(place, die=(int(rng.integers(1, calm.writes + 1)), str(rng.choice(MOMENTS))))
        code = case.end(job, kept)
    else:
        job = case.start(place)
        case.kill(job, float(rng.uniform(*calm.window)), kept)
        code = job.finish()
    assert code in (case.ends_with, -signal.SIGKILL), f"it ended with {code}: {job.said()}"
    tally.kills += code != case.ends_with
    tally.at_a_write += at_a_write and code != case.ends_with
    return code != case.ends_with


def look(case: Case, place: Path, before: int, kept: set[int], tally: Tally) -> int:
    """No file is half written, and nothing that was there is gone. Returns how far the command has come."""
    tally.files += len(files(place))
    assert not unreadable(place), unreadable(place)
    case.check(place, kept)
    far = case.progress(place)
    assert far >= before, f"{far} after {before}"
    return far
