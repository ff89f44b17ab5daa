"""What an attack carries, and how it is laid into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

TRAP = "sprung"


class Bomb:
    """Unpickling it leaves a file behind."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (TRAP, "w"))


def with_settings(run: Path, **settings: Any) -> None:
    content = yaml.safe_load((run / "recipe.yaml").read_text())
    (run / "recipe.yaml").write_text(yaml.safe_dump(content | settings))
