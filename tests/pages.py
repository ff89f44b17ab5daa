"""The code blocks of README.md and docs/, as the tests run them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
SHELL = frozenset({"", "bash", "console"})
FENCE = re.compile(r"^(?P<before>[^\n]*)\n```(?P<kind>\w*)\n(?P<text>.*?)^```$", flags=re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (?P<why>.+) -->")
PROGRAMS = frozenset(
    {"fewtags", "make", "python", "pip", "curl", "pytest", "pre-commit", "torchrun", "srun", "$EDITOR"}
)
"""What a shell block may begin with; a block without any of them is a listing."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    text: str
    not_run: str | None
    """Why it is only looked at."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command of a shell block; none if it is a listing of files."""
        if self.kind not in SHELL:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        found = [words for line in lines if (words := shlex.split(line, comments=True))]
        return found if any(words[0] in PROGRAMS for words in found) else []


def blocks(page: Path) -> list[Block]:
    """In their order. What keeps one from running stands above it, with a blank line between them or none."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        above = text[: match.start("before")].rstrip("\n").rpartition("\n")[2]
        reason = NOT_RUN.fullmatch(match["before"].strip() or above.strip())
        line = text.count("\n", 0, match.start("kind")) + 1
        found.append(Block(page.name, line, match["kind"], match["text"], reason and reason["why"]))
    return found
