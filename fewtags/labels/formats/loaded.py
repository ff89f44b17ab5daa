"""What every format gives back, and the reading they share."""

from __future__ import annotations

import json
import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fewtags.errors import Problems, UserError
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import LabelTable

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
PARTS = {TRAIN: ("train",), TEST: ("test", "val", "valid", "validation")}
"""What other tools call a split; the first that is there counts."""


class Loaded(NamedTuple):
    table: LabelTable
    root: Path
    """The folder that the table's image paths start from."""
    notes: tuple[str, ...] = ()
    """Sentences for the person who loads it."""


def read_text(path: Path) -> str:
    """A UTF-8 file (a byte order mark is fine) that is not empty."""
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UserError(f"{path}: {_encoding_problem(content, problem)}. Save it as UTF-8") from problem
    if not text.strip():
        raise UserError(f"{path}: the file is empty")
    return text


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as problem:
        raise UserError(f"{path}: there is no such file") from problem
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from problem


def _encoding_problem(content: bytes, problem: UnicodeDecodeError) -> str:
    if content.startswith(UTF16_MARKS):
        return "the file is UTF-16, not UTF-8"
    line_start = content.rfind(b"\n", 0, problem.start) + 1
    line = content.count(b"\n", 0, problem.start) + 1
    column = content.count(b",", line_start, problem.start) + 1
    return f"line {line}, column {column}: byte 0x{content[problem.start]:02x} is not UTF-8"


def read_lines(path: Path) -> list[tuple[int, str]]:
    """(line number, text) of every line that is not blank."""
    lines = enumerate(read_text(path).splitlines(), start=1)
    return [(number, line.strip()) for number, line in lines if line.strip()]


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path), object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as problem:
        raise UserError(f"{path}: line {problem.lineno}, column {problem.colno}: not JSON") from problem
    except (
        ValueError,
        RecursionError,
    ) as problem:  # a key twice, a number of thousands of digits, endless nesting
        raise UserError(f"{path}: not JSON that can be read ({problem})") from problem


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two equal keys JSON readers keep the last, and would lose a label without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {repeated!r} is there twice")
    return found


def read_names(path: Path) -> tuple[str, ...]:
    """Category names, one a line, each once."""
    problems = Problems(str(path))
    first_line: dict[str, int] = {}
    for number, name in read_lines(path):
        if name in first_line:
            problems.add(f"line {number}: {name!r} is already on line {first_line[name]}")
        first_line.setdefault(name, number)
    problems.raise_if_any()
    return tuple(first_line)


def first_line(problem: Exception) -> str:
    """Libraries explain themselves at length; the first line says it."""
    return (str(problem).splitlines() or [type(problem).__name__])[0]


def first_existing(candidates: Iterable[Path], what: str) -> Path:
    """The first of the places that exists; the error names them all."""
    places = list(candidates)
    for place in places:
        if place.exists():
            return place
    raise UserError(f"no {what}: looked for " + ", ".join(str(place) for place in places))


def part_files(root: Path, templates: Sequence[str]) -> dict[str, Path]:
    """Split → its file, for the splits that have one. `templates`: paths below `root` with {part} in them."""
    found: dict[str, Path] = {}
    for split, parts in PARTS.items():
        places = (root / template.format(part=part) for part in parts for template in templates)
        if file := next((place for place in places if place.is_file()), None):
            found[split] = file
    return found


def split_of(part: str) -> str | None:
    """`Validation` → test; None if the word names no split."""
    return next((split for split, parts in PARTS.items() if part.lower() in parts), None)


def only_json(folder: Path) -> Path:
    files = sorted(folder.glob("*.json"))
    if len(files) != 1:
        listed = ", ".join(file.name for file in files[:5])
        what = f"several JSON files ({listed}): name the one to read" if files else "no JSON file"
        raise UserError(f"{folder}: there {'are' if files else 'is'} {what}")
    return files[0]


def require_inside(images: Sequence[str], headline: str) -> None:
    problems = Problems(headline)
    for image in images:
        if not is_inside(image):
            problems.add(f"image {image!r} is outside the folder")
    problems.raise_if_any()


def is_inside(image: str) -> bool:
    """Whether a path, as a file names it, stays below the folder it starts from."""
    name = posixpath.normpath(image.replace("\\", "/"))
    return bool(image) and not name.startswith(("/", "../")) and name != ".." and not Path(image).is_absolute()


def is_file(path: Path) -> bool:
    """Also of names that no file can have, because they are too long or hold a NUL."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def missing_rows(root: Path, images: Sequence[str]) -> list[int]:
    """Rows whose image is not a file below `root`. Each folder is listed once: much faster on a network."""
    listed: dict[str, set[str]] = {}
    missing = []
    for row, image in enumerate(images):
        folder, _, name = image.rpartition("/")
        if folder not in listed:
            listed[folder] = _file_names(root / folder)
        if name not in listed[folder]:
            missing.append(row)
    return missing


def require_images(root: Path, images: Sequence[str], headline: str) -> None:
    problems = Problems(headline)
    for row in missing_rows(root, images):
        problems.add(f"image {root / images[row]} is missing")
    problems.raise_if_any()


def _file_names(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries if _is_file(entry)}
    except (OSError, ValueError):  # not there, or named as no folder can be
        return set()


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself
        return False
