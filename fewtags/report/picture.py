"""One wide picture of a comparison, for a README."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def comparison_picture(runs: Sequence[Path], out: Path) -> Path:
    raise NotImplementedError
