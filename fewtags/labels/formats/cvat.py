"""CVAT for images 1.1: annotations.xml with tags, and the images in images/.

    <image id="0" name="train/1.jpg" subset="train" width="640" height="480">
      <tag label="dog" source="manual"><attribute name="state">absent</attribute></tag>
    </image>

A tag says that its label is present, or absent if its attribute `state` says so; a label without a tag is
unknown. A model's labels have source="auto". Boxes and other shapes are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.labels.formats import provenance
from fewtags.labels.formats.entries import VALUES, WORDS, Entry, count_unknown, rows_of, table_of
from fewtags.labels.formats.loaded import Loaded, is_inside, missing_rows, split_of
from fewtags.labels.formats.safe_xml import Parsed, read_xml
from fewtags.labels.formats.writing import require_names, require_once
from fewtags.labels.split import TEST, TRAIN, seeded_split
from fewtags.labels.table import COMPLETED, GIVEN, HUMAN, LabelTable

ANNOTATIONS, IMAGES, LABELS = "annotations.xml", "images", "labels.json"
STATE = "state"
PLACES = {TRAIN: f"{IMAGES}/{TRAIN}", TEST: f"{IMAGES}/{TEST}"}
"""Split → the folder of its images, as `write` expects them."""
SHAPES = ("box", "polygon", "polyline", "points", "cuboid", "ellipse", "mask", "skeleton")


class TaggedImage(NamedTuple):
    name: str
    subset: str
    line: int
    tags: list[tuple[str, str, str, int]]
    """(label, state, source, line) of each."""


def read(path: str | Path, seed: int = 0) -> Loaded:
    """annotations.xml, or the unpacked folder that holds it."""
    file = Path(path) / ANNOTATIONS if Path(path).is_dir() else Path(path)
    root, parsed = file.parent, read_xml(file)
    if parsed.root.tag != "annotations":
        raise UserError(f"{file}: not CVAT for images: it begins with <{parsed.root.tag}>, not <annotations>")
    found = list(_tagged_images(parsed))
    if not found:
        tracks = " (it has tracks: export as `CVAT for images`, not for video)" if _count(parsed, "track") else ""
        raise UserError(f"{file}: there is no <image>{tracks}")
    problems = Problems(str(file))
    categories = _categories(parsed, found, problems)
    rows = [_row(image, problems) for image in found]
    images = _located(root, found, problems)
    problems.raise_if_any()
    splits, notes = _splits(found, seed)
    table = table_of(images, categories, rows, splits)
    if shapes := sum(_count(parsed, shape) for shape in SHAPES):
        notes = (*notes, f"{shapes} boxes and other shapes are left out: only tags are read")
    return Loaded(provenance.read(table, root / "labels", strict=False), root, notes)


def _tagged_images(parsed: Parsed) -> Iterator[TaggedImage]:
    for item in parsed.root.iter("image"):
        tags = [
            (tag.get("label", ""), _state(tag), tag.get("source", "manual"), parsed.lines[tag])
            for tag in item.iter("tag")
        ]
        yield TaggedImage(item.get("name", ""), item.get("subset", ""), parsed.lines[item], tags)


def _state(tag: Element) -> str:
    """Without the attribute, a tag says what tags say: present."""
    states = [(item.text or "").strip() for item in tag.iter("attribute") if item.get("name") == STATE]
    return states[0] if states else WORDS[VALUES["present"]]


def _count(parsed: Parsed, element: str) -> int:
    return sum(1 for _ in parsed.root.iter(element))


def _categories(parsed: Parsed, found: Sequence[TaggedImage], problems: Problems) -> list[str]:
    """Those that <meta> declares; without it, every label found, sorted."""
    mentions = [(label, f"line {line}") for image in found for label, _, _, line in image.tags]
    names = [item.findtext("name") or "" for meta in parsed.root.iter("meta") for item in meta.iter("label")]
    declared = list(dict.fromkeys(filter(None, names)))
    if declared:
        count_unknown(mentions, declared, "label {name} is not declared in <labels>", problems)
    elif not mentions:
        problems.add("there is neither a label in <labels> nor a <tag>")
    return declared or sorted({label for label, _ in mentions})


def _row(image: TaggedImage, problems: Problems) -> dict[str, Entry]:
    row: dict[str, Entry] = {}
    for label, state, source, line in image.tags:
        if not label.strip():
            problems.add(f"line {line}: a tag without a label")
        if state not in VALUES:
            problems.add(f"line {line}: {STATE} {state!r} of {label!r} is neither present nor absent")
            continue
        entry = Entry(VALUES[state], COMPLETED if source == "auto" else GIVEN)
        if row.setdefault(label, entry).value != entry.value:
            problems.add(f"line {line}: {label!r} is present and absent in {image.name}")
    return row


def _located(root: Path, found: Sequence[TaggedImage], problems: Problems) -> list[str]:
    """Each image's path: below images/ (of a project: images/SUBSET/), or beside the file."""
    candidates = [
        [f"{IMAGES}/{image.name}", f"{IMAGES}/{image.subset}/{image.name}", image.name] for image in found
    ]
    located: list[str] = [paths[0] for paths in candidates]
    for place in (2, 1, 0):
        tried = [paths[place] for paths in candidates]
        missing = set(missing_rows(root, tried))
        located = [old if row in missing else tried[row] for row, old in enumerate(located)]
    for row in missing_rows(root, located):
        problems.add(f"line {found[row].line}: image {root / located[row]} is missing")
    for image in found:
        if not is_inside(image.name) or not is_inside(image.subset or "."):
            problems.add(f"line {image.line}: image {image.name!r} is outside the folder")
    require_once(located, "image", problems)
    return located


def _splits(found: Sequence[TaggedImage], seed: int) -> tuple[Sequence[str], tuple[str, ...]]:
    """By subset, else by the first folder of the name; if that leaves some out, a seeded split of all."""
    own = [split_of(image.subset) or split_of(image.name.partition("/")[0]) for image in found]
    splits = [split for split in own if split is not None]
    if len(splits) == len(own):
        return splits, ()
    return seeded_split(len(found), seed), (f"not every image has a subset: a seeded 80/20 split (seed {seed})",)


def write(table: LabelTable, folder: Path, sizes: Sequence[tuple[int, int]] | None = None) -> None:
    """Labels only: annotations.xml, and labels.json for the Raw tab of a new CVAT task. `sizes`: of each image."""
    require_names(table, "CVAT")
    _require_printable([*table.categories, *table.images])
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    _add_meta(root, table)
    for number, (image, row) in enumerate(zip(table.images, rows_of(table), strict=True)):
        fields = {"id": str(number), "name": image.removeprefix(f"{IMAGES}/"), "subset": table.splits[number]}
        if sizes is not None:
            fields |= {"width": str(sizes[number][0]), "height": str(sizes[number][1])}
        item = SubElement(root, "image", fields)
        for label, entry in row.items():
            source = "manual" if entry.source in (GIVEN, HUMAN) else "auto"
            tag = SubElement(item, "tag", {"label": label, "source": source})
            SubElement(tag, "attribute", {"name": STATE}).text = WORDS[entry.value]
    indent(root)
    text = '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"
    write_text(folder / ANNOTATIONS, text)
    labels = [_label(name) for name in table.categories]
    write_text(folder / LABELS, json.dumps(labels, ensure_ascii=False, indent=1))
    provenance.write(table, folder / "labels")


def _add_meta(root: Element, table: LabelTable) -> None:
    task = SubElement(SubElement(root, "meta"), "task")
    SubElement(task, "name").text = "fewtags"
    SubElement(task, "size").text = str(len(table))
    SubElement(task, "mode").text = "annotation"
    labels = SubElement(task, "labels")
    for name in table.categories:
        label = SubElement(labels, "label")
        SubElement(label, "name").text = name
        SubElement(label, "type").text = "tag"
        attribute = SubElement(SubElement(label, "attributes"), "attribute")
        fields = {"name": STATE, "mutable": "False", "input_type": "select", "default_value": "present"}
        for field, text in (fields | {"values": "\n".join(VALUES)}).items():
            SubElement(attribute, field).text = text


def _label(name: str) -> dict[str, object]:
    state = {"name": STATE, "mutable": False, "input_type": "select", "default_value": "present"}
    return {"name": name, "type": "tag", "attributes": [state | {"values": list(VALUES)}]}


def _require_printable(texts: Sequence[str]) -> None:
    problems = Problems("cannot be written as CVAT")
    for text in texts:
        if not all(letter >= " " and letter not in "\ufffe\uffff" for letter in text):
            problems.add(f"{text!r} has a letter that XML cannot hold; rename it")
    problems.raise_if_any()
