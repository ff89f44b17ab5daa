"""VG-200: Visual Genome with the image lists and label indices that SSGRL published.

The folder holds train_list_500.txt and test_list_500.txt (one image name a line), a label index (image name
→ list of category numbers) and the images in VG_100K and VG_100K_2. VG-200 is the first 200 of SSGRL's 500
categories, so vg_category_500_labels_index.json serves as well as the 200 one. The index has no names: put
them in categories.txt, one a line, or they are numbered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.labels.formats.loaded import (
    Loaded,
    first_existing,
    missing_rows,
    read_json,
    read_lines,
    read_names,
    require_inside,
)
from fewtags.labels.formats.writing import require_images_like, require_names, require_once, require_sayable
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable

COUNT = 200
LISTS = {TRAIN: "train_list_500.txt", TEST: "test_list_500.txt"}
INDICES = ("vg_category_200_labels_index.json", "vg_category_500_labels_index.json")
NAMES = "categories.txt"
FOLDERS = ("VG_100K", "VG_100K_2", "images/VG_100K", "images/VG_100K_2")


def read(path: str | Path) -> Loaded:
    root = Path(path)
    index_file = first_existing((root / name for name in INDICES), "VG-200 label index")
    names = {split: [line for _, line in read_lines(root / file)] for split, file in LISTS.items()}
    listed = names[TRAIN] + names[TEST]
    _check_listed(root, listed)
    values = _values(index_file, _index(index_file), listed)
    splits = tuple(split for split in LISTS for _ in names[split])
    categories, notes = _categories(root)
    return Loaded(LabelTable(_located(root, listed), categories, values, splits), root, notes)


def write(table: LabelTable, folder: Path) -> None:
    """Labels only: the two lists, the index of 200 and the names."""
    _check_writable(table)
    names = [_file_name(image) for image in table.images]
    index = {n: np.flatnonzero(row == PRESENT).tolist() for n, row in zip(names, table.values, strict=True)}
    write_text(folder / NAMES, "".join(f"{name}\n" for name in table.categories))
    for split, file in LISTS.items():
        write_text(folder / file, "".join(f"{_file_name(image)}\n" for image in table.split(split).images))
    write_text(folder / INDICES[0], json.dumps(index))


def _check_writable(table: LabelTable) -> None:
    require_sayable(table, "VG-200", UNKNOWN, "a folder or openimages")
    if len(table.categories) != COUNT:
        found = len(table.categories)
        raise UserError(f"VG-200 has {COUNT} categories, the table {found}: write a folder or openimages instead")
    require_names(table, "VG-200")
    require_images_like(table, "VG-200", dict.fromkeys(LISTS, f"({'|'.join(FOLDERS)})/NAME"), r"[^/\s][^/]*")
    problems = Problems("cannot be written as VG-200")
    require_once([_file_name(image) for image in table.images], "image name", problems)
    problems.raise_if_any()


def _file_name(image: str) -> str:
    return image.rpartition("/")[2]


def _categories(root: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not (root / NAMES).is_file():
        note = f"no {NAMES} in {root}: the categories are numbered"
        return tuple(f"category {number}" for number in range(COUNT)), (note,)
    names = read_names(root / NAMES)
    if len(names) < COUNT:
        raise UserError(f"{root / NAMES}: {len(names)} names, VG-200 has {COUNT} categories")
    return names[:COUNT], ()


def _check_listed(root: Path, listed: Sequence[str]) -> None:
    require_inside(listed, str(root))
    problems = Problems(", ".join(str(root / file) for file in LISTS.values()))
    require_once(listed, "image", problems)
    problems.raise_if_any()


def _index(file: Path) -> dict[str, Any]:
    index = read_json(file)
    if not isinstance(index, dict):
        raise UserError(f"{file}: not a label index: it needs a key for each image")
    return index


def _values(file: Path, index: Mapping[str, Any], images: Sequence[str]) -> np.ndarray:
    """(n, 200) int8. Numbers from 200 on belong to VG-500 and are left out."""
    values = np.full((len(images), COUNT), ABSENT, dtype=np.int8)
    problems = Problems(str(file))
    for row, image in enumerate(images):
        numbers = index.get(image)
        if numbers is None:
            problems.add(f"no entry for the listed image {image}")
        elif not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            problems.add(f"image {image}: {numbers} is not a list of category numbers")
        else:
            values[row, [number for number in numbers if number < COUNT]] = PRESENT
    problems.raise_if_any()
    return values


def _located(root: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Each image with the folder it is in: Visual Genome comes in two halves."""
    located: dict[str, str] = {}
    for folder in FOLDERS:
        wanted = [name for name in names if name not in located]
        paths = [f"{folder}/{name}" for name in wanted]
        absent = set(missing_rows(root, paths))
        located |= {name: paths[row] for row, name in enumerate(wanted) if row not in absent}
    problems = Problems(f"{root}: images are in none of {', '.join(FOLDERS)}")
    for name in names:
        if name not in located:
            problems.add(f"image {name} is missing")
    problems.raise_if_any()
    return tuple(located[name] for name in names)
