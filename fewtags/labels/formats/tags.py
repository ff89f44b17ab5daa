"""Positives only: what is tagged is present, everything else is unknown.

Two layouts. *Lists*: lines `file, number number ...` in train.txt and test.txt, or in one tags.txt (or in
the file that is given), with names.txt beside them; numbers count the names from 0. *A folder of tags*:
beside each image a text file of the same name, one tag a line; names.txt, if there is one, says which tags
exist and their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.labels.formats import provenance
from fewtags.labels.formats.loaded import Loaded, is_inside, read_bytes, read_lines, read_names, require_images
from fewtags.labels.formats.writing import require_images_like, require_names, require_sayable
from fewtags.labels.split import TEST, TRAIN, seeded_split
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable

NAMES, ALL = "names.txt", "tags.txt"
LISTS = {TRAIN: "train.txt", TEST: "test.txt"}
NOT_TAGS = {NAMES, ALL, *LISTS.values()}


def read(path: str | Path, seed: int = 0) -> Loaded:
    path = Path(path)
    if path.is_file():
        return _read_lists(path.parent, [path], None, seed)
    if not path.is_dir():
        raise UserError(f"{path}: there is no such file or folder")
    if all((path / name).is_file() for name in LISTS.values()):
        return _read_lists(path, [path / name for name in LISTS.values()], tuple(LISTS), seed)
    if (path / ALL).is_file():
        return _read_lists(path, [path / ALL], None, seed)
    return _read_tag_files(path, seed)


def write(table: LabelTable, folder: Path) -> None:
    """Lists, labels only: train.txt, test.txt and names.txt."""
    require_sayable(table, "tags", ABSENT, "a folder or openimages")
    require_names(table, "tags")
    require_images_like(table, "tags", dict.fromkeys(LISTS, "NAME"), ".+")
    write_text(folder / NAMES, "".join(f"{name}\n" for name in table.categories))
    for split, name in LISTS.items():
        part = table.split(split)
        lines = zip(part.images, part.values == PRESENT, strict=True)
        text = "".join(f"{image}, {' '.join(map(str, np.flatnonzero(row)))}\n" for image, row in lines)
        write_text(folder / name, text)
    provenance.write(table, folder / "labels")


def _read_lists(root: Path, files: Sequence[Path], splits: Sequence[str] | None, seed: int) -> Loaded:
    names = read_names(root / NAMES)
    problems = Problems(", ".join(str(file) for file in files))
    parts = [_list_entries(file, len(names), problems) for file in files]
    entries = [entry for part in parts for entry in part]
    _check_once([image for image, _ in entries], problems)
    for image, _ in entries:
        if not is_inside(image):
            problems.add(f"image {image!r} is outside the folder")
    problems.raise_if_any()
    require_images(root, [image for image, _ in entries], str(root))
    own = None if splits is None else [s for s, part in zip(splits, parts, strict=True) for _ in part]
    return _loaded(root, entries, names, own, seed)


def _list_entries(file: Path, count: int, problems: Problems) -> list[tuple[str, list[int]]]:
    """(image, category numbers) of every line; the last comma divides them."""
    entries = []
    for line, text in read_lines(file):
        image, comma, numbers = text.rpartition(",")
        wrong = [number for number in numbers.split() if not _is_category(number, count)]
        if not comma:
            problems.add(f"{file.name} line {line}: not `file, number number ...`")
        elif wrong:
            problems.add(
                f"{file.name} line {line}: unknown category {', '.join(wrong)}; {NAMES} has {count} names"
            )
        else:
            entries.append((image.strip(), [int(number) for number in numbers.split()]))
    return entries


def _is_category(number: str, count: int) -> bool:
    return number.isdecimal() and len(number) <= len(str(count)) and int(number) < count


def _check_once(images: Sequence[str], problems: Problems) -> None:
    seen: set[str] = set()
    for image in images:
        if image in seen:
            problems.add(f"{image} is listed twice")
        seen.add(image)


def _read_tag_files(root: Path, seed: int) -> Loaded:
    from fewtags.images.loading import list_images

    images = list_images(root)
    if not images:
        raise UserError(f"{root}: there are no images, and no lists ({', '.join(LISTS.values())} or {ALL})")
    problems = Problems(str(root))
    tags = [_tags_of(root, image) for image in images]
    _check_all_used(root, images, problems)
    named = (root / NAMES).is_file()
    names = read_names(root / NAMES) if named else tuple(sorted({tag for found in tags for tag in found}))
    numbers = {name: number for number, name in enumerate(names)}
    for image, found in zip(images, tags, strict=True):
        for tag in sorted(set(found) - set(names)):
            problems.add(f"tags of {image}: unknown category {tag!r}; it is not in {NAMES}")
    problems.raise_if_any()
    if not names:
        raise UserError(f"{root}: no image has a text file with tags beside it")
    return _loaded(
        root, [(i, [numbers[t] for t in f]) for i, f in zip(images, tags, strict=True)], names, None, seed
    )


def _tag_files(root: Path, image: str) -> tuple[Path, Path]:
    """a.jpg → a.txt or a.jpg.txt"""
    path = root / image
    return path.with_suffix(".txt"), path.with_name(path.name + ".txt")


def _tags_of(root: Path, image: str) -> list[str]:
    """No file, or an empty one: nobody tagged the image."""
    for file in _tag_files(root, image):
        if file.is_file() and read_bytes(file).strip():
            return [tag for _, tag in read_lines(file)]
    return []


def _check_all_used(root: Path, images: Sequence[str], problems: Problems) -> None:
    used = {file for image in images for file in _tag_files(root, image)}
    for file in sorted(root.rglob("*.txt")):
        if file not in used and file.name not in NOT_TAGS:
            problems.add(f"{file.relative_to(root)} has no image beside it")


def _loaded(
    root: Path,
    entries: Sequence[tuple[str, list[int]]],
    names: tuple[str, ...],
    splits: Sequence[str] | None,
    seed: int,
) -> Loaded:
    values = np.full((len(entries), len(names)), UNKNOWN, dtype=np.int8)
    for row, (_, numbers) in enumerate(entries):
        values[row, numbers] = PRESENT
    notes = ["tags only: everything that is not tagged is unknown"]
    if splits is None:
        notes.append(f"tags bring no split: a seeded 80/20 split (seed {seed})")
        splits = seeded_split(len(entries), seed)
    table = LabelTable(tuple(i for i, _ in entries), names, values, tuple(splits))
    return Loaded(provenance.read(table, root / "labels", strict=False), root, tuple(notes))
