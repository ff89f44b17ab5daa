"""FiftyOne's layout of image classifications, fiftyone.types.FiftyOneImageClassificationDataset.

    train/data/1.jpg   train/labels.json   train/absent.json   (and so for test)

`labels.json` says what is present: {"classes": [...], "labels": {"1": [0, {"label": 3, "confidence": 0.93}]}}.
FiftyOne has no word for absent, so that goes into a second file of the same layout, `absent.json`, which it loads
into a field of its own. What is in neither is unknown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.labels.formats.entries import (
    VALUES,
    WORDS,
    Entry,
    Row,
    count_unknown,
    is_number,
    rows_of,
    table_of,
)
from fewtags.labels.formats.loaded import Loaded, part_files, read_json
from fewtags.labels.formats.writing import require_named, require_names, require_once
from fewtags.labels.split import TEST, TRAIN, seeded_split
from fewtags.labels.table import COMPLETED, GIVEN, LabelTable

LABELS, DATA = "labels.json", "data"
FILES = {"present": LABELS, "absent": "absent.json"}
PLACES = {TRAIN: f"{TRAIN}/{DATA}", TEST: f"{TEST}/{DATA}"}
"""Split → the folder of its images, as `write` expects them."""


def read(path: str | Path, seed: int = 0) -> Loaded:
    """A folder with train/ and test/ (or validation/), or one with labels.json itself and no split."""
    root = Path(path)
    if (root / LABELS).is_file():
        images, categories, rows = _read_part(root, root)
        notes = (f"{LABELS} has no split: a seeded 80/20 split (seed {seed})",)
        return Loaded(table_of(images, categories, rows, seeded_split(len(images), seed)), root, notes)
    files = part_files(root, (f"{{part}}/{LABELS}",))
    if not files:
        raise UserError(f"{root}: there is no {LABELS}, nor one in train/ or test/")
    parts = {split: _read_part(root, file.parent) for split, file in files.items()}
    first = next(iter(parts.values()))
    for split, (_, categories, _) in parts.items():
        if categories != first[1]:
            raise UserError(f"{files[split]}: its classes are not those of {next(iter(files.values()))}")
    return Loaded(
        table_of(
            [image for images, _, _ in parts.values() for image in images],
            first[1],
            [row for _, _, rows in parts.values() for row in rows],
            [split for split, (images, _, _) in parts.items() for _ in images],
        ),
        root,
    )


def _read_part(root: Path, folder: Path) -> tuple[list[str], list[str], list[Row]]:
    """(images from the root, categories, rows) of one labels.json and the absent.json beside it."""
    contents = {word: _content(folder / name) for word, name in FILES.items() if (folder / name).is_file()}
    problems = Problems(str(folder / LABELS))
    image_of = _images(folder / DATA, problems)
    labelled = [key for content in contents.values() for key in content["labels"]]
    keys = list(dict.fromkeys([*labelled, *image_of]))
    for key in keys:
        if key not in image_of:
            problems.add(f"{key!r}: there is no such image in {folder / DATA}")
    categories = _categories(contents)
    require_named(categories, problems)
    found = {word: _targets(content, problems) for word, content in contents.items()}
    mentions = ((name, repr(key)) for targets in found.values() for key, name, _ in targets)
    count_unknown(mentions, categories, "{name} is not among the classes", problems)
    rows = _rows(found, problems)
    problems.raise_if_any()
    images = [(folder / DATA / image_of[key]).relative_to(root).as_posix() for key in keys]
    return images, categories, [rows.get(key, {}) for key in keys]


def _content(file: Path) -> dict[str, Any]:
    content = read_json(file)
    if not isinstance(content, dict) or not isinstance(content.get("labels"), dict):
        raise UserError(f"{file}: not FiftyOne's classifications: it needs 'labels', a key for each image")
    classes = content.get("classes")
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise UserError(f"{file}: 'classes' is not a list of names")
    return content


def _images(folder: Path, problems: Problems) -> dict[str, str]:
    """FiftyOne's key (the path without its ending) → image. Those without a label are images too."""
    from fewtags.images.loading import list_images

    found: dict[str, str] = {}
    for image in list_images(folder):
        key = _key(image)
        if found.setdefault(key, image) != image:
            problems.add(f"{key!r}: is it {found[key]} or {image}? Rename one")
    return found


def _key(image: str) -> str:
    return PurePosixPath(image).with_suffix("").as_posix()


def _categories(contents: Mapping[str, dict[str, Any]]) -> list[str]:
    """The classes; where a file lists none, every label found, sorted."""
    listed = [content["classes"] for content in contents.values() if content.get("classes")]
    if listed:
        return list(dict.fromkeys(name for classes in listed for name in classes))
    found = (name for content in contents.values() for _, name, _ in _targets(content, Problems("")))
    return sorted(set(found))


def _targets(content: dict[str, Any], problems: Problems) -> list[tuple[str, str, dict[str, Any]]]:
    """(key, category, the target's fields) of every label. A target is a class number, a name or a dict."""
    classes = content.get("classes") or []
    found = []
    for key, targets in content["labels"].items():
        for target in [] if targets is None else targets if isinstance(targets, list) else [targets]:
            fields = target if isinstance(target, dict) else {"label": target}
            label = fields.get("label")
            if type(label) is int and 0 <= label < len(classes):
                label = classes[label]
            if not isinstance(label, str):
                problems.add(f"{key!r}: {label!r} is neither a name nor a number of the {len(classes)} classes")
            elif not (fields.get("confidence") is None or is_number(fields["confidence"])):
                problems.add(f"{key!r}: the confidence {fields['confidence']!r} of {label!r} is not a number")
            else:
                found.append((key, label, fields))
    return found


def _rows(
    found: Mapping[str, Sequence[tuple[str, str, dict[str, Any]]]], problems: Problems
) -> dict[str, dict[str, Entry]]:
    rows: dict[str, dict[str, Entry]] = {}
    for word, targets in found.items():
        for key, name, fields in targets:
            entry = _entry(VALUES[word], fields)
            before = rows.setdefault(key, {}).setdefault(name, entry)
            if before.value != entry.value:
                problems.add(f"{key!r}: {name!r} is in {LABELS} and in {FILES['absent']}")
    return rows


def _entry(value: int, fields: dict[str, Any]) -> Entry:
    """A label with a confidence is a model's, unless it says otherwise."""
    confidence = fields.get("confidence")
    attributes = fields.get("attributes")
    attributes = attributes if isinstance(attributes, dict) else {}
    source = str(attributes.get("source", GIVEN if confidence is None else COMPLETED))
    return Entry(value, source, math.nan if confidence is None else float(confidence))


def write(table: LabelTable, folder: Path) -> None:
    """Labels only; the images are train/data/NAME and test/data/NAME."""
    require_names(table, "FiftyOne")
    problems = Problems("cannot be written as FiftyOne")
    require_once([_key(image) for image in table.images], "image (without its ending)", problems)
    problems.raise_if_any()
    number_of = {name: number for number, name in enumerate(table.categories)}
    for split, place in PLACES.items():
        part = table.split(split)
        keys = [_key(image.removeprefix(f"{place}/")) for image in part.images]
        rows = rows_of(part)
        for value, word in WORDS.items() if keys else ():
            labels = {key: _written(row, value, number_of) for key, row in zip(keys, rows, strict=True)}
            text = json.dumps({"classes": list(table.categories), "labels": labels}, ensure_ascii=False)
            write_text(folder / split / FILES[word], text)


def _written(row: Row, value: int, number_of: Mapping[str, int]) -> list[Any] | None:
    """The targets of one image; None, FiftyOne's word for unlabelled, if there are none."""
    targets = [_target(number_of[name], entry) for name, entry in row.items() if entry.value == value]
    return targets or None


def _target(number: int, entry: Entry) -> int | dict[str, Any]:
    if entry.source == GIVEN:
        return number
    confidence = {} if math.isnan(entry.confidence) else {"confidence": entry.confidence}
    return {"label": number, **confidence, "attributes": {"source": entry.source}}
