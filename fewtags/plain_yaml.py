"""YAML that is nothing but values: no tags that make objects, no aliases that make a small file huge in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fewtags.errors import UserError

LARGEST_FILE = 1_000_000
"""Bytes. A recipe has about 3,000."""


class PlainLoader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not read; write the value", mark)
        return super().compose_node(parent, index)


def parse(text: str, where: str) -> Any:
    """The values in `text`; `where` is what errors call it."""
    try:
        return yaml.load(text, PlainLoader)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as problem:
        raise UserError(f"{where}: not readable as YAML: {problem}") from problem


def read(path: Path) -> Any:
    if path.stat().st_size > LARGEST_FILE:
        raise UserError(f"{path}: larger than {LARGEST_FILE:,} bytes, so it is no recipe")
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as problem:
        raise UserError(f"{path}: not readable as YAML: {problem}") from problem
