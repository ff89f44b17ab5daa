"""Tables of a markdown file, made again from results.csv: `python -m fewtags.benchmark.markdown docs/results.md`.

A table stands between `<!-- table NAME from docs/benchmark/results.csv -->` and `<!-- end -->`; what is between is
replaced. NAME is one of `TABLES`. The CSV is looked for beside the file and in the folders above it; where there
is none yet, the place says so.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd

from fewtags.benchmark.results import read_results
from fewtags.benchmark.table import Cell, Table, said_once
from fewtags.benchmark.tables import TABLES
from fewtags.errors import UserError
from fewtags.files import write_text

START = re.compile(r"^<!-- table (?P<name>\S+) from (?P<path>\S+) -->\n", re.MULTILINE)
END = "<!-- end -->"
EMPTY = "*No rows yet.*"


def regenerate(file: Path) -> list[str]:
    """Rewrite the file's tables; the names of those that changed."""
    text = _read(file)
    made = regenerated(text, file)
    if made != text:
        write_text(file, made)
    before, after = _contents(text, file), _contents(made, file)
    return [name for (name, old), (_, new) in zip(before, after, strict=True) if old != new]


def regenerated(text: str, file: Path) -> str:
    """The text with every marked table made again."""
    parts, place = [], 0
    for start in START.finditer(text):
        end = _end(text, start, file)
        parts += [text[place : start.end()], "\n", content(start["name"], start["path"], file), "\n\n"]
        place = end
    return "".join([*parts, text[place:]])


def content(name: str, path: str, file: Path) -> str:
    if name not in TABLES:
        raise UserError(f"{file}: there is no table {name!r}; there are {', '.join(TABLES)}")
    return markdown(list(TABLES[name](_results(file, path))))


def markdown(tables: list[Table]) -> str:
    """The tables below one another, each under its title."""
    return "\n\n".join(map(_table, said_once(tables))) or EMPTY


def _table(table: Table) -> str:
    lines = ["| " + " | ".join(map(_escaped, table.columns)) + " |", "|" + "---|" * len(table.columns)]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in table.rows]
    notes = "" if not table.notes else "\n\n" + " ".join(map(_escaped, table.notes))
    return f"**{_escaped(table.title)}**\n\n" + "\n".join(lines) + notes


def _cell(cell: Cell) -> str:
    text = f"`{cell.text}`" if cell.code else _escaped(cell.text)
    return f"**{text}**" if cell.best else text


def _escaped(text: str) -> str:
    return re.sub(r"([|*_<`])", r"\\\1", text)


def _results(file: Path, path: str) -> pd.DataFrame:
    folders = file.resolve().parents
    return read_results(
        next((folder / path for folder in folders if (folder / path).is_file()), folders[0] / path)
    )


def _end(text: str, start: re.Match[str], file: Path) -> int:
    end, following = text.find(END, start.end()), START.search(text, start.end())
    if end < 0 or (following is not None and following.start() < end):
        raise UserError(f"{file}: the table {start['name']!r} is not closed; write {END} below it")
    return end


def _contents(text: str, file: Path) -> list[tuple[str, str]]:
    return [(start["name"], text[start.end() : _end(text, start, file)]) for start in START.finditer(text)]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{file}: not readable as text ({problem})") from problem


def main(arguments: list[str]) -> int:
    """0 when all is well, 2 with a message when it is not."""
    if not arguments:
        print("usage: python -m fewtags.benchmark.markdown FILE.md [FILE.md ...]", file=sys.stderr)
        return 2
    try:
        for file in map(Path, arguments):
            changed = regenerate(file)
            print(f"{file}: {'changed ' + ', '.join(changed) if changed else 'all tables are up to date'}")
    except UserError as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
