"""The example images of one or several runs as cards: what was known, what was filled in, what is predicted.

Read from `examples/examples.json` of a run folder:

    {"images": [{"file": "0.png", "name": "...", "known_present": [...], "known_absent": [...],
                 "hidden_present": [...] or null (truth not available),
                 "filled": [{"category": "...", "module": "intra" | "cross" | "own", "evidence": 0.93,
                             "right": true | false | null}],
                 "predicted": [{"category": "...", "probability": 0.91}],
                 "attention": [{"category": "...", "map": [[H rows of W floats]], "kind": "sd" | "sa"}]}],
     "cooccurrence": {"image": "0.png", "categories": [...],
                      "matrices": {"statistical": [[...]], "ist_without_loss": [[...]], "ist": [[...]]}}}

A matrix holds P(column | row). Runs show an image together when its name is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from PIL import Image

from fewtags.report.charts import matrix_chart
from fewtags.report.overlays import attention_uri, open_example, photo_uri
from fewtags.report.runs import Run

MATRICES = {
    "statistical": (
        "Statistics",
        "how often the two occur together in the known labels; the same for every image",
    ),
    "ist_without_loss": ("Learned, without its loss", "the pair head when the co-occurrence loss is left out"),
    "ist": ("Learned (IST)", "the pair head: what occurs together in this very image"),
}
KINDS = {"sd": "SD", "sa": "SA"}
MOST_PREDICTED = 6


def example_cards(runs: Sequence[Run], most: int = 8) -> list[dict[str, Any]]:
    """One card per image; what several runs say of the same image (by name) stands together."""
    names = list(dict.fromkeys(_name(image) for run in runs for image in run.examples.get("images", [])))
    return [_card(name, runs) for name in names[:most]]


def cooccurrence(runs: Sequence[Run]) -> dict[str, Any] | None:
    """The matrices of the first run that has them, drawn, with the image they belong to."""
    for run in runs:
        found = run.examples.get("cooccurrence")
        if found and found.get("matrices"):
            folder = run.path / "examples"
            there = (folder / str(found["image"])).is_file()
            source = photo_uri(open_example(folder, found["image"])) if there else None
            return {"src": source, "image": found["image"], "run": run.name, "matrices": _matrices(found)}
    return None


def merged_fills(filled: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A category filled by both modules is one chip that names both; most evidence first."""
    chips: dict[str, dict[str, Any]] = {}
    for fill in sorted(filled, key=lambda fill: -(fill.get("evidence") or 0)):
        chip = chips.setdefault(
            fill["category"], {"category": fill["category"], "right": fill.get("right"), "by": []}
        )
        chip["by"].append((fill["module"], fill.get("evidence")))
    return list(chips.values())


def _card(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    entries = [(run, image) for run in runs for image in run.examples.get("images", []) if _name(image) == name]
    run, image = entries[0]
    photo = open_example(run.path / "examples", image["file"])
    hidden = next(
        (entry["hidden_present"] for _, entry in entries if entry.get("hidden_present") is not None), None
    )
    truth = None if hidden is None else {*image.get("known_present", []), *hidden}
    return {
        "name": name,
        "src": photo_uri(photo),
        "known_present": image.get("known_present", []),
        "known_absent": image.get("known_absent", []),
        "hidden_present": hidden,
        "runs": [_of_run(run, entry, truth) for run, entry in entries],
        "attention": _attention(photo, [entry for _, entry in entries]),
    }


def _of_run(run: Run, entry: dict[str, Any], truth: set[str] | None) -> dict[str, Any]:
    predicted = sorted(entry.get("predicted", []), key=lambda guess: -guess["probability"])[:MOST_PREDICTED]
    return {
        "name": run.name,
        "filled": merged_fills(entry.get("filled", [])),
        "predicted": [
            {**guess, "right": None if truth is None else guess["category"] in truth} for guess in predicted
        ],
    }


def _attention(photo: Image.Image, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per category the maps of each kind, SD before SA, each kind once."""
    by_category: dict[str, dict[str, str]] = {}
    for entry in entries:
        for attention in entry.get("attention", []):
            maps = by_category.setdefault(attention["category"], {})
            if attention["kind"] not in maps:
                maps[attention["kind"]] = attention_uri(photo, attention["map"])
    return [
        {"category": category, "maps": [{"kind": KINDS[k], "src": maps[k]} for k in KINDS if k in maps]}
        for category, maps in by_category.items()
    ]


def _matrices(found: dict[str, Any]) -> list[dict[str, str | Markup]]:
    return [
        {
            "title": title,
            "note": note,
            "svg": matrix_chart(title, found["matrices"][key], found["categories"]),
        }
        for key, (title, note) in MATRICES.items()
        if found["matrices"].get(key) is not None
    ]


def _name(image: dict[str, Any]) -> str:
    return str(image.get("name") or image["file"])
