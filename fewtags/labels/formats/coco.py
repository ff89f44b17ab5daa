"""MS-COCO 2014 and 2017: instances_{train,val}YEAR.json and the folders trainYEAR, valYEAR.

Category ids have gaps; columns follow the ids in rising order. Images without any annotation count: they lack
every category.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.labels.formats.loaded import Loaded, first_existing, read_json, require_images
from fewtags.labels.formats.writing import require_images_like, require_names, require_sayable
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable

PARTS = {TRAIN: "train", TEST: "val"}


def read(path: str | Path, year: Literal[2014, 2017]) -> Loaded:
    """`path` holds annotations/ (or the JSON files) and the image folders (or images/ with them)."""
    root = Path(path)
    parts = {split: _read_part(root, f"{name}{year}", split) for split, name in PARTS.items()}
    train, test = parts[TRAIN], parts[TEST]
    if train.categories != test.categories:
        raise UserError(f"{root}: the categories of the {year} train and val files differ")
    table = LabelTable(
        train.images + test.images,
        train.categories,
        np.concatenate([train.values, test.values]),
        train.splits + test.splits,
    )
    return Loaded(table, root)


def write(table: LabelTable, folder: Path, year: Literal[2014, 2017] = 2014) -> None:
    """Labels only. The images are in trainYEAR/ and valYEAR/, or all in images/trainYEAR/ and images/valYEAR/."""
    require_sayable(table, "COCO", UNKNOWN, "a folder or openimages")
    require_names(table, "COCO")
    above = "images/" if all(image.startswith("images/") for image in table.images) else ""
    places = {split: f"{above}{name}{year}/" for split, name in PARTS.items()}
    require_images_like(table, f"COCO {year}", {split: f"{place}NAME" for split, place in places.items()}, ".+")
    first_id = 1
    for split, name in PARTS.items():
        part = table.split(split)
        content = _content(part, places[split], first_id)
        write_text(folder / "annotations" / f"instances_{name}{year}.json", json.dumps(content))
        first_id += len(part)


def _content(table: LabelTable, place: str, first_id: int) -> dict[str, Any]:
    """An annotation has no box: it says that the category is there, not where."""
    files = [image.removeprefix(place) for image in table.images]
    present = enumerate(np.argwhere(table.values == PRESENT).tolist(), start=1)
    return {
        "images": [{"id": number, "file_name": file} for number, file in enumerate(files, start=first_id)],
        "annotations": [
            {"id": number, "image_id": first_id + row, "category_id": column + 1, "iscrowd": 0}
            for number, (row, column) in present
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(table.categories, start=1)],
    }


def _read_part(root: Path, part: str, split: str) -> LabelTable:
    name = f"instances_{part}.json"
    file = first_existing((root / "annotations" / name, root / name), f"annotations of COCO {part}")
    content = read_json(file)
    _check_keys(file, content)
    folder = first_existing((root / part, root / "images" / part), f"images of COCO {part}")
    below = folder.relative_to(root).as_posix()
    images = tuple(f"{below}/{image['file_name']}" for image in content["images"])
    require_images(root, images, str(file))
    categories = sorted(content["categories"], key=lambda category: category["id"])
    values = _values(file, content, [category["id"] for category in categories])
    return LabelTable(images, tuple(category["name"] for category in categories), values, (split,) * len(images))


def _check_keys(file: Path, content: Any) -> None:
    keys = ("images", "annotations", "categories")
    if not isinstance(content, dict) or not all(isinstance(content.get(key), list) for key in keys):
        raise UserError(f"{file}: not a COCO instances file: it needs the lists {', '.join(keys)}")


def _values(file: Path, content: dict[str, Any], category_ids: list[int]) -> np.ndarray:
    """(n, C) int8: present where any annotation (crowds too) says so, else absent."""
    row_of = {image["id"]: row for row, image in enumerate(content["images"])}
    column_of = {category: column for column, category in enumerate(category_ids)}
    values = np.full((len(row_of), len(column_of)), ABSENT, dtype=np.int8)
    problems = Problems(str(file))
    _check_ids(content["annotations"], row_of.get, column_of.get, problems)
    problems.raise_if_any()
    rows = [row_of[item["image_id"]] for item in content["annotations"]]
    columns = [column_of[item["category_id"]] for item in content["annotations"]]
    values[rows, columns] = PRESENT
    return values


def _check_ids(
    annotations: list[dict[str, Any]],
    row_of: Callable[[int], int | None],
    column_of: Callable[[int], int | None],
    problems: Problems,
) -> None:
    for number, item in enumerate(annotations, start=1):
        if row_of(item["image_id"]) is None:
            problems.add(f"annotation {number}: unknown image_id {item['image_id']}")
        if column_of(item["category_id"]) is None:
            problems.add(f"annotation {number}: unknown category_id {item['category_id']}")
