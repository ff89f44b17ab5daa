"""Pascal VOC 2007: the devkit with Annotations, ImageSets/Main and JPEGImages.

A category with nothing but *difficult* objects in an image is unknown there (SPEC 7), or absent as in the
authors' code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import numpy as np

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.labels.formats import provenance
from fewtags.labels.formats.loaded import (
    Loaded,
    first_existing,
    is_file,
    is_inside,
    read_lines,
    require_images,
)
from fewtags.labels.formats.safe_xml import read_xml
from fewtags.labels.formats.writing import require_images_like, require_once
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable

CATEGORIES = [
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *(
        "diningtable",
        "dog",
        "horse",
        "motorbike",
        "person",
        "pottedplant",
        "sheep",
        "sofa",
        "train",
        "tvmonitor",
    ),
]
LISTS = {TRAIN: "trainval", TEST: "test"}


def read(path: str | Path, difficult: Literal["unknown", "absent"] = "unknown") -> Loaded:
    """`path`: the VOC2007 folder, the VOCdevkit, or the folder it was unpacked in."""
    root = _root(Path(path))
    ids = {split: _image_ids(root / "ImageSets" / "Main" / f"{name}.txt") for split, name in LISTS.items()}
    problems = Problems(str(root))
    _check_ids([image for split in LISTS for image in ids[split]], problems)
    only_difficult = UNKNOWN if difficult == "unknown" else ABSENT
    rows = [_row(root, image, only_difficult, problems) for split in LISTS for image in ids[split]]
    problems.raise_if_any()
    images = tuple(f"JPEGImages/{image}.jpg" for split in LISTS for image in ids[split])
    require_images(root, images, str(root))
    splits = tuple(split for split in LISTS for _ in ids[split])
    table = LabelTable(images, tuple(CATEGORIES), np.stack(rows), splits)
    return Loaded(provenance.read(table, root / "labels", strict=False), root)


def write(table: LabelTable, folder: Path) -> None:
    """Labels only. Unknown is a difficult object: read with difficult="absent", it would be absent."""
    if table.categories != tuple(CATEGORIES):
        raise UserError(
            f"Pascal VOC has the {len(CATEGORIES)} categories {', '.join(CATEGORIES)}, in this order; "
            "the table has others: write a folder or openimages instead"
        )
    require_images_like(table, "Pascal VOC", dict.fromkeys(LISTS, r"JPEGImages/NAME\.jpg"), r"[^/\s]+")
    for image, row in zip(table.images, table.values, strict=True):
        write_text(folder / "Annotations" / f"{Path(image).stem}.xml", _annotation(image, row))
    for split, name in LISTS.items():
        lines = "".join(f"{Path(image).stem}\n" for image in table.split(split).images)
        write_text(folder / "ImageSets" / "Main" / f"{name}.txt", lines)
    provenance.write(table, folder / "labels")


def _annotation(image: str, row: np.ndarray) -> str:
    """One object for each category that is present, a difficult one if it is unknown."""
    root = ElementTree.Element("annotation")
    ElementTree.SubElement(root, "filename").text = Path(image).name
    for column in np.flatnonzero(row != ABSENT):
        item = ElementTree.SubElement(root, "object")
        ElementTree.SubElement(item, "name").text = CATEGORIES[column]
        ElementTree.SubElement(item, "difficult").text = "1" if row[column] == UNKNOWN else "0"
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _root(path: Path) -> Path:
    places = (path, path / "VOC2007", path / "VOCdevkit" / "VOC2007")
    return first_existing((place / "Annotations" for place in places), "Pascal VOC 2007 annotations").parent


def _image_ids(path: Path) -> list[str]:
    """A line of a VOC list is an id; lists of one category have a flag behind it."""
    if not path.is_file():
        raise UserError(
            f"{path}: there is no such file. Unpack both VOCtrainval_06-Nov-2007.tar and "
            "VOCtest_06-Nov-2007.tar into one folder"
        )
    return [line.split()[0] for _, line in read_lines(path)]


def _check_ids(ids: Sequence[str], problems: Problems) -> None:
    for image in ids:
        if not is_inside(image):
            problems.add(f"ImageSets/Main: image {image!r} is outside the folder")
    require_once(ids, "image", problems)
    problems.raise_if_any()


def _row(root: Path, image: str, only_difficult: int, problems: Problems) -> np.ndarray:
    """(C,) int8: present with an ordinary object, `only_difficult` with difficult ones alone, else absent."""
    row = np.full(len(CATEGORIES), ABSENT, dtype=np.int8)
    for name, is_difficult in _objects(root / "Annotations" / f"{image}.xml", problems):
        if name not in CATEGORIES:
            problems.add(f"Annotations/{image}.xml: unknown category {name!r}")
        elif not is_difficult:
            row[CATEGORIES.index(name)] = PRESENT
        elif row[CATEGORIES.index(name)] != PRESENT:
            row[CATEGORIES.index(name)] = only_difficult
    return row


def _objects(path: Path, problems: Problems) -> list[tuple[str, bool]]:
    """(category, whether difficult) of every object."""
    shown = f"Annotations/{path.name}"
    if not is_file(path):
        problems.add(f"{shown}: there is no such file")
        return []
    try:
        found = read_xml(path, shown).root
    except UserError as problem:
        problems.add(str(problem))
        return []
    if found.tag != "annotation":
        problems.add(f"{shown}: not a VOC annotation: it begins with <{found.tag}>, not <annotation>")
    return [(_child(item, "name"), _is_difficult(item, shown, problems)) for item in found.findall("object")]


def _child(item: ElementTree.Element, name: str) -> str:
    return (item.findtext(name) or "").strip()


def _is_difficult(item: ElementTree.Element, shown: str, problems: Problems) -> bool:
    said = _child(item, "difficult")
    if said not in ("", "0", "1"):
        problems.add(f"{shown}: <difficult> is {said!r}, neither 0 nor 1")
    return said == "1"
