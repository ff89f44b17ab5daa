"""MS-COCO 2014 and 2017: instances_{train,val}YEAR.json and the folders trainYEAR, valYEAR.

Category ids have gaps; columns follow the ids in rising order. Images without any annotation count: they lack
every category.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.labels.formats.coco_json import category_names, read_content, values_of
from fewtags.labels.formats.loaded import Loaded, first_existing, require_images, require_inside
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
    content = read_content(file)
    folder = first_existing((root / part, root / "images" / part), f"images of COCO {part}")
    require_inside([image["file_name"] for image in content["images"]], str(file))
    below = folder.relative_to(root).as_posix()
    images = tuple(f"{below}/{image['file_name']}" for image in content["images"])
    require_images(root, images, str(file))
    values = values_of(file, content, unsaid=ABSENT)
    return LabelTable(images, category_names(content), values, (split,) * len(images))
