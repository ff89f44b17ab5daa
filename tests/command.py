"""`fewtags` as a user runs it: a process, its output, its exit code."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.conftest import TINY
from tests.nursery import Nursery

WIDE = {"COLUMNS": "160"}
Answer = subprocess.CompletedProcess[str]


def fewtags(*arguments: object, cwd: Path | None = None) -> Answer:
    """In a process of its own, forked from one that has imported everything."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        code = _nursery().start(arguments, output, WIDE, errors, cwd).finish()
        return subprocess.CompletedProcess(arguments, code, output.read_text("utf-8"), errors.read_text("utf-8"))


@cache
def _nursery() -> Nursery:
    nursery = Nursery()
    atexit.register(nursery.close)
    return nursery


def fresh_fewtags(*arguments: object, cwd: Path | None = None) -> Answer:
    """In a new interpreter: what is imported, and when, is as it is for a user."""
    command = [sys.executable, "-m", "fewtags", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=os.environ | WIDE, timeout=300)


def tiny_settings() -> list[str]:
    """`--set KEY=VALUE` for each setting of `TINY`."""
    return [part for key, value in TINY.items() for part in ("--set", f"{key}={as_yaml(value)}")]


def as_yaml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def shown_on(screen: int) -> str:
    """What is written to a terminal until its last writer is gone."""
    shown = b""
    while True:
        try:
            shown += os.read(screen, 65536)
        except OSError:  # how Linux says that nobody writes any more
            return shown.decode(errors="replace")
