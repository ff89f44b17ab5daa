"""A run folder may come from a stranger. What it holds is values, checked before anything is made from them.

Weights are safetensors, settings YAML and JSON: none of them can carry code. What is left to a stranger is to name
other files (links, paths) and sizes that no memory holds; see also `training/fits.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from fewtags.errors import UserError

LARGEST_JSON = 100_000_000
"""Bytes. The largest is examples.json, of some hundred thousand."""


def refuse_links_outside(folder: Path) -> None:
    """Reading through such a link could put your files into a report; writing would overwrite them."""
    home = folder.resolve()
    for above, folders, files in os.walk(home):
        for name in [*folders, *files]:
            path = Path(above, name)
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(home):
                raise UserError(f"{path}: links to a place outside of the run folder; remove it, or copy it here")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a run folder."""
    damaged = "the file is damaged or not written by fewtags"
    if path.stat().st_size > LARGEST_JSON:
        raise UserError(f"{path}: larger than {LARGEST_JSON:,} bytes; {damaged}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise UserError(f"{path}: not readable as JSON ({problem}); {damaged}") from problem
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise UserError(f"{path}: holds a {kind} where an object was expected; {damaged}")
    return content
