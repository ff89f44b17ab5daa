"""Writing Label Studio's tasks: known labels as annotations, a model's labels and suggestions as predictions.

A task with anything to confirm gets a prediction instead of an annotation, because Label Studio takes an annotated
task for finished. The prediction holds the known labels too: whoever accepts it loses none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fewtags.files import write_text
from fewtags.labels.formats.entries import WORDS, Entry, Row, rows_of
from fewtags.labels.formats.label_studio import CONFIG, RECORD, TASKS, is_persons
from fewtags.labels.formats.writing import require_names
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import ABSENT, GIVEN, PRESENT, LabelTable

PLACES = {TRAIN: "images", TEST: "images"}
"""Split → the folder of its images, as `write` expects them."""
MODEL = "fewtags"
LIKELY = 0.5
HEADERS = {PRESENT: "Present", ABSENT: "Absent: you looked, and it is not there"}
Suggested = Mapping[str, tuple[float, str]]
"""Category → (probability that it is present, decision: present, absent or unknown), of one image."""


def write(
    table: LabelTable, folder: Path, prefix: str = "", suggested: Mapping[str, Suggested] | None = None
) -> None:
    """tasks.json and config.xml. `prefix`: what Label Studio needs in front of an image's path to find it.

    `suggested`: image → what a model thinks of its unknown entries.
    """
    require_names(table, "Label Studio")
    asked = suggested or {}
    tasks = [
        _task(image, split, row, prefix, asked.get(image, {}))
        for image, split, row in zip(table.images, table.splits, rows_of(table), strict=True)
    ]
    write_text(folder / TASKS, json.dumps(tasks, ensure_ascii=False, indent=1))
    write_text(folder / CONFIG, _config(table.categories, with_table=suggested is not None))


def _task(image: str, split: str, row: Row, prefix: str, suggested: Suggested) -> dict[str, Any]:
    address = prefix + quote(image) if prefix else image
    data = {"image": address, RECORD: _record(image, split, row)}
    if suggested:
        ranked = sorted(suggested.items(), key=lambda item: -item[1][0])
        data["probabilities"] = {name: round(probability, 4) for name, (probability, _) in ranked}
    proposed = _proposed(row, suggested)
    if proposed:
        return {"data": data, "predictions": [_prediction(dict(row) | proposed, proposed)]}
    return {"data": data, "annotations": [{"result": _results(row)}]} if row else {"data": data}


def _record(image: str, split: str, row: Row) -> dict[str, Any]:
    """What `label_studio.read` compares an annotation with."""
    sources = {
        name: [entry.source, None if math.isnan(entry.confidence) else entry.confidence]
        for name, entry in row.items()
        if entry.source != GIVEN
    }
    by_value = {word: [n for n, entry in row.items() if entry.value == value] for value, word in WORDS.items()}
    return {"image": image, "split": split, **by_value, "sources": sources}


def _proposed(row: Row, suggested: Suggested) -> dict[str, Entry]:
    """What a model completed, what it decided, and of what it left open the likely ones.

    The unlikely ones stay unchosen: a person who accepts should not confirm dozens of absents unseen.
    """
    proposed = {name: entry for name, entry in row.items() if not is_persons(entry)}
    for name, (probability, decision) in suggested.items():
        if name in row:
            continue
        if decision == WORDS[ABSENT]:
            proposed[name] = Entry(ABSENT, MODEL, 1 - probability)
        elif decision == WORDS[PRESENT] or probability >= LIKELY:
            proposed[name] = Entry(PRESENT, MODEL, probability)
    return proposed


def _prediction(row: Row, proposed: Row) -> dict[str, Any]:
    """Its score is that of the least sure choice: sorted by it, the doubtful images come first."""
    scores = [entry.confidence for entry in proposed.values() if not math.isnan(entry.confidence)]
    score = {"score": round(min(scores), 6)} if scores else {}
    return {"model_version": MODEL, **score, "result": _results(row)}


def _results(row: Row) -> list[dict[str, Any]]:
    """One result per group: Label Studio shows only one of several for the same group."""
    found = []
    for value, word in WORDS.items():
        if choices := [name for name, entry in row.items() if entry.value == value]:
            head = {"id": word, "from_name": word, "to_name": "image", "type": "choices"}
            found.append({**head, "value": {"choices": choices}})
    return found


def _config(categories: Sequence[str], with_table: bool) -> str:
    view = Element("View")
    SubElement(view, "Image", {"name": "image", "value": "$image"})
    for value, word in WORDS.items():
        SubElement(view, "Header", {"value": HEADERS[value]})
        group = {"name": word, "toName": "image", "choice": "multiple", "showInline": "true"}
        choices = SubElement(view, "Choices", group)
        for name in categories:
            SubElement(choices, "Choice", {"value": name})
    if with_table:
        SubElement(view, "Table", {"name": "probabilities", "value": "$probabilities"})
    indent(view)
    return tostring(view, encoding="unicode") + "\n"
