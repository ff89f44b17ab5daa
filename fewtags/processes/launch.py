"""Start the same command several times on this machine, as `--devices N` asks, and look after the copies.

The copies find their place in the variables that torchrun would set. The first that fails ends all: the others
would wait for it for ever.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO

from fewtags.errors import UserError
from fewtags.processes.place import find_place

LOOK_EVERY, MOMENT, GRACE = 0.1, 2.0, 10.0
"""Seconds between looks at the copies, in which others notice the same, and until those that hang are killed."""
MISTAKE = 2
"""The exit code of a mistake of the user."""


def starts_others(devices: int | None, nodes: int | None) -> bool:
    """Whether this process is to start copies of itself: several are asked for and nobody has started them."""
    if (devices or 1) * (nodes or 1) == 1 or find_place(devices, nodes) is not None:
        return False
    if (nodes or 1) > 1:
        raise UserError(
            f"--nodes {nodes}: other machines have to be started from outside; use torchrun or srun "
            "(docs/scale.md has both commands)"
        )
    return True


def run_copies(count: int, arguments: Sequence[str]) -> int:
    """Run `fewtags ARGUMENTS` in `count` processes that work together → exit code of the first to fail, or 0."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
    common |= {"LOCAL_WORLD_SIZE": str(count)} | _threads(count)
    said = [tempfile.TemporaryFile() for _ in range(count - 1)]  # noqa: SIM115  what others than the first say
    copies = []
    try:
        for rank in range(count):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            quiet = {"stdout": subprocess.DEVNULL, "stderr": said[rank - 1]} if rank else {}
            copies.append(subprocess.Popen(command(arguments), env=os.environ | common | own, **quiet))  # type: ignore[call-overload]
        return _look_after(copies, said)
    except KeyboardInterrupt:  # it has reached the copies too: they stop in order
        _wait(copies)
        raise
    finally:
        _end(copies)


def command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "fewtags", *arguments]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _threads(count: int) -> dict[str, str]:
    """The copies share the cores; torch would give each of them all."""
    if "OMP_NUM_THREADS" in os.environ:
        return {}
    return {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // count))}


def _look_after(copies: Sequence[subprocess.Popen[bytes]], said: Sequence[IO[bytes]]) -> int:
    while True:
        codes = [copy.poll() for copy in copies]
        failed = [rank for rank, code in enumerate(codes) if code]
        if failed:
            return _explained(failed[0], copies, said)
        if all(code == 0 for code in codes):
            return 0
        time.sleep(LOOK_EVERY)


def _explained(failed: int, copies: Sequence[subprocess.Popen[bytes]], said: Sequence[IO[bytes]]) -> int:
    """Show what the copy said, unless it was a mistake of the user that the first one tells as well."""
    code = copies[failed].returncode
    if failed > 0:
        _wait(copies[:1], MOMENT)
        if code != MISTAKE or copies[0].poll() != code:
            said[failed - 1].seek(0)
            sys.stderr.write(said[failed - 1].read().decode("utf-8", "replace"))
    return code if code > 0 else 1


def _end(copies: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask those still running to end; after a while make them."""
    for copy in copies:
        copy.terminate()
    _wait(copies)
    for copy in copies:
        copy.kill()
        copy.wait()


def _wait(copies: Sequence[subprocess.Popen[bytes]], seconds: float = GRACE) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(copy.poll() is None for copy in copies):
        time.sleep(LOOK_EVERY)
