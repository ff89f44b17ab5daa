"""Of processes that work together, one writes: it keeps other commands out of the folder meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar, cast

from fewtags.faults import telling
from fewtags.locks import alone_in
from fewtags.processes.together import is_writer

ELSEWHERE = ", or choose another --out"
Work = TypeVar("Work", bound=Callable[..., Any])


@contextmanager
def writing_to(folder: Path, command: str) -> Iterator[None]:
    """Nobody else runs this command in the folder; a fault of the machine meanwhile is told to people."""
    with alone_in(folder, command, ELSEWHERE) if is_writer() else nullcontext(), telling(folder):
        yield


def alone(command: str) -> Callable[[Work], Work]:
    """Guard a function of (what, how, out, ...): nobody else runs the command in the folder `out` meanwhile."""

    def guard(work: Work) -> Work:
        @functools.wraps(work)
        def guarded(what: Any, how: Any, out: str | Path, *rest: Any, **settings: Any) -> Any:
            with writing_to(Path(out), command):
                return work(what, how, out, *rest, **settings)

        return cast(Work, guarded)

    return guard
