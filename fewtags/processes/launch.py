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

LOOK_EVERY, GRACE = 0.1, 10.0
"""Seconds between looks at the copies, and until those that do not end on request are killed."""


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
    command = [sys.executable, "-m", "fewtags", *arguments]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
    common |= {"LOCAL_WORLD_SIZE": str(count)} | _threads(count)
    said = [tempfile.TemporaryFile() for _ in range(count - 1)]  # noqa: SIM115  what others than the first say
    copies = []
    try:
        for rank in range(count):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            quiet = {"stdout": subprocess.DEVNULL, "stderr": said[rank - 1]} if rank else {}
            copies.append(subprocess.Popen(command, env=os.environ | common | own, **quiet))  # type: ignore[call-overload]
        return _look_after(copies, said)
    finally:
        _end(copies)


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
            if failed[0] > 0:
                _show(said[failed[0] - 1])
            return codes[failed[0]] if (codes[failed[0]] or 0) > 0 else 1  # type: ignore[return-value]
        if all(code == 0 for code in codes):
            return 0
        time.sleep(LOOK_EVERY)


def _show(said: IO[bytes]) -> None:
    said.seek(0)
    sys.stderr.write(said.read().decode("utf-8", "replace"))


def _end(copies: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask those still running to end; after a while make them. Ctrl-C has reached them by itself."""
    running = [copy for copy in copies if copy.poll() is None]
    for copy in running:
        copy.terminate()
    deadline = time.monotonic() + GRACE
    for copy in running:
        try:
            copy.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            copy.kill()
            copy.wait()
