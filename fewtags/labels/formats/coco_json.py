"""COCO-style JSON of any data set: `images`, `annotations`, `categories`, with LVIS's way to say unknown.

In MS-COCO everything was looked for: a category without an annotation is absent. Where images have
`neg_category_ids`, as in LVIS, those are absent, annotated ones present, and all others unknown. Boxes and
masks, if there are any, are not looked at.

A folder holds `annotations/instances_train.json` and `instances_test.json` (or val), with the images in
train/, test/ or images/; or `train/_annotations.coco.json` and so on; or one JSON file without a split.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.labels.formats import provenance
from fewtags.labels.formats.entries import count_unknown
from fewtags.labels.formats.loaded import (
    Loaded,
    is_file,
    only_json,
    part_files,
    read_json,
    require_images,
    require_inside,
)
from fewtags.labels.formats.writing import require_named, require_names, require_once
from fewtags.labels.split import TEST, TRAIN, seeded_split
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable

NEGATIVE = "neg_category_ids"
FIELDS = {"images": ("id", "file_name"), "annotations": ("image_id", "category_id"), "categories": ("id", "name")}
FIELD_TYPES = {"file_name": str, "name": str, "id": int, "image_id": int, "category_id": int}
FILES = ("annotations/instances_{part}.json", "annotations/{part}.json", "{part}/_annotations.coco.json")
PLACES = {TRAIN: TRAIN, TEST: TEST}
"""Split → the folder of its images, as `write` expects them."""
INFO = f"{NEGATIVE} as in LVIS: absent. Annotated: present. Neither: unknown"


def read(path: str | Path, seed: int = 0) -> Loaded:
    """`path`: a folder, or one JSON file with the images beside it."""
    path = Path(path)
    files = {} if path.is_file() else part_files(path, FILES)
    root = path if path.is_dir() else path.parent
    if not files:
        file = path if path.is_file() else only_json(path)
        notes = (f"{file.name} has no split: a seeded 80/20 split (seed {seed})",)
        return _loaded(root, [file], None, seed, notes)
    return _loaded(root, list(files.values()), list(files), seed, ())


def _loaded(
    root: Path, files: Sequence[Path], splits: Sequence[str] | None, seed: int, notes: tuple[str, ...]
) -> Loaded:
    contents = [read_content(file) for file in files]
    says_unknown = any(NEGATIVE in image for content in contents for image in content["images"])
    if not says_unknown:
        notes = (*notes, f"no image has {NEGATIVE}: what is not annotated is absent, as in MS-COCO")
    parts = [_part(root, f, c, UNKNOWN if says_unknown else ABSENT) for f, c in zip(files, contents, strict=True)]
    for file, part in zip(files, parts, strict=True):
        if part.categories != parts[0].categories:
            raise UserError(f"{file}: its categories are not those of {files[0]}")
    images = tuple(image for part in parts for image in part.images)
    own = None if splits is None else [s for s, part in zip(splits, parts, strict=True) for _ in part.images]
    table = LabelTable(
        images,
        parts[0].categories,
        np.concatenate([part.values for part in parts]),
        tuple(own or seeded_split(len(images), seed)),
    )
    return Loaded(provenance.read(table, root / "labels", strict=False), root, notes)


def _part(root: Path, file: Path, content: dict[str, Any], unsaid: int) -> LabelTable:
    """The table of one file; its splits are not settled yet."""
    names = [image["file_name"] for image in content["images"]]
    require_inside(names, str(file))
    folder = _image_folder(root, file, names)
    below = folder.relative_to(root).as_posix()
    images = tuple(names if below == "." else (f"{below}/{name}" for name in names))
    require_images(root, images, str(file))
    return LabelTable(images, category_names(content), values_of(file, content, unsaid), ("",) * len(images))


def _image_folder(root: Path, file: Path, names: Sequence[str]) -> Path:
    """Where the first image is; else the first place, and the missing images are told from there."""
    part = file.parent.name if file.name.startswith("_") else file.stem.removeprefix("instances_")
    places = [root / part, root / "images" / part, root / "images", root / "data", root]
    found = (place for place in places if names and is_file(place / names[0]))
    return next(found, next(place for place in places if place.is_dir()))


def read_content(file: Path) -> dict[str, Any]:
    """The JSON of a COCO-style file, after a check that it has the lists and fields that are read."""
    content = read_json(file)
    if not isinstance(content, dict) or not all(isinstance(content.get(key), list) for key in FIELDS):
        raise UserError(f"{file}: not a COCO instances file: it needs the lists {', '.join(FIELDS)}")
    problems = Problems(str(file))
    for key, fields in FIELDS.items():
        for number, item in enumerate(content[key], start=1):
            for field in fields:
                if not isinstance(item, dict) or type(item.get(field)) is not FIELD_TYPES[field]:
                    problems.add(f"{key}, number {number}: no {field!r} that can be read")
    problems.raise_if_any()
    _check_negatives(content, problems)
    require_named([category["name"] for category in content["categories"]], problems)
    require_once([image["file_name"] for image in content["images"]], "image", problems)
    problems.raise_if_any()
    return content


def _check_negatives(content: dict[str, Any], problems: Problems) -> None:
    for number, image in enumerate(content["images"], start=1):
        said = image.get(NEGATIVE) or []
        if not isinstance(said, list) or not all(type(entry) is int for entry in said):
            problems.add(f"images, number {number}: {NEGATIVE} is not a list of category ids")
    problems.raise_if_any()


def category_names(content: dict[str, Any]) -> tuple[str, ...]:
    """In the order of their ids."""
    return tuple(str(item["name"]) for item in sorted(content["categories"], key=lambda item: item["id"]))


def values_of(file: Path, content: dict[str, Any], unsaid: int) -> np.ndarray:
    """(n, C) int8: present where any annotation (crowds too) says so, absent where the image does, or `unsaid`."""
    row_of = {image["id"]: row for row, image in enumerate(content["images"])}
    ids = sorted(category["id"] for category in content["categories"])
    column_of = {number: column for column, number in enumerate(ids)}
    problems = Problems(str(file))
    _check_ids(content, row_of, column_of, problems)
    values = np.full((len(row_of), len(column_of)), unsaid, dtype=np.int8)
    rows = [row_of[item["image_id"]] for item in content["annotations"]]
    values[rows, [column_of[item["category_id"]] for item in content["annotations"]]] = PRESENT
    for image in content["images"]:
        row, columns = row_of[image["id"]], [column_of[number] for number in image.get(NEGATIVE) or ()]
        for column in columns:
            if values[row, column] == PRESENT:
                problems.add(f"{image['file_name']}: category {ids[column]} is annotated and in {NEGATIVE}")
        values[row, columns] = ABSENT
    problems.raise_if_any()
    return values


def _check_ids(
    content: dict[str, Any], row_of: dict[int, int], column_of: dict[int, int], problems: Problems
) -> None:
    if len(row_of) < len(content["images"]):
        problems.add("two images have the same id")
    if len(column_of) < len(content["categories"]):
        problems.add("two categories have the same id")
    items = list(enumerate(content["annotations"], start=1))
    images = ((item["image_id"], f"annotation {number}") for number, item in items)
    count_unknown(images, row_of, "image_id {name} is not among the images", problems)
    categories = ((item["category_id"], f"annotation {number}") for number, item in items)
    told = "category_id {name} is not among the categories"
    count_unknown(categories, column_of, told, problems)
    count_unknown(_negatives(content), column_of, told, problems)
    problems.raise_if_any()


def _negatives(content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    for image in content["images"]:
        for number in image.get(NEGATIVE) or ():
            yield number, f"{NEGATIVE} of {image['file_name']}"


def write(table: LabelTable, folder: Path, sizes: Sequence[tuple[int, int]] | None = None) -> None:
    """Labels only; the images are train/NAME and test/NAME. `sizes`: width and height of each image."""
    require_names(table, "COCO")
    first_id = 1
    for split, place in PLACES.items():
        rows = [row for row, of in enumerate(table.splits) if of == split]
        if not rows:
            continue
        own_sizes = None if sizes is None else [sizes[row] for row in rows]
        content = content_of(table.rows(np.array(rows)), f"{place}/", first_id, own_sizes)
        write_text(folder / "annotations" / f"instances_{split}.json", json.dumps(content, ensure_ascii=False))
        first_id += len(rows)
    provenance.write(table, folder / "labels")


def content_of(
    table: LabelTable, place: str, first_id: int, sizes: Sequence[tuple[int, int]] | None
) -> dict[str, Any]:
    """An annotation has no box: it says that the category is there, not where."""
    present = enumerate(np.argwhere(table.values == PRESENT).tolist(), start=1)
    return {
        "info": {"description": INFO},
        "images": [_image(table, row, place, first_id, sizes) for row in range(len(table))],
        "annotations": [
            {"id": number, "image_id": first_id + row, "category_id": column + 1, "iscrowd": 0}
            for number, (row, column) in present
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(table.categories, start=1)],
    }


def _image(
    table: LabelTable, row: int, place: str, first_id: int, sizes: Sequence[tuple[int, int]] | None
) -> dict[str, Any]:
    size = {} if sizes is None else {"width": sizes[row][0], "height": sizes[row][1]}
    return {
        "id": first_id + row,
        "file_name": table.images[row].removeprefix(place),
        **size,
        NEGATIVE: (np.flatnonzero(table.values[row] == ABSENT) + 1).tolist(),
        "not_exhaustive_category_ids": [],
    }
