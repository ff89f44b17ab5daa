"""Made-up suggestions, and a review of them that needs no trained model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from fewtags.completion.suggestions import DECISIONS, ORIGINS, SCHEMA, write_suggestions
from fewtags.data import open_data
from fewtags.review.app import Parts, create_app
from fewtags.review.attention import NoAttentionError
from fewtags.review.decisions import Decisions
from fewtags.review.images import Pictures
from fewtags.review.index import Names, open_index
from fewtags.review.security import Policy
from fewtags.review.session import Review
from fewtags.review.start import Place

CATEGORIES = ("keyboard", "mouse", "apple", "scissors")
COLOURS = ((220, 60, 50), (60, 120, 220), (90, 180, 70), (230, 180, 40))


def suggestion_table(rows: list[dict]) -> pa.Table:
    defaults = {
        "probability": 0.5,
        "decision": "unknown",
        "origin": "model",
        "score": 0.4,
        "intra": None,
        "intra_because": "[]",
        "cross": None,
        "cross_because": "[]",
    }
    return pa.Table.from_pylist([defaults | row for row in rows], schema=SCHEMA)


def write_photos(folder: Path, count: int = 10, size: tuple[int, int] = (96, 64)) -> Path:
    """A folder data set: keyboard is known present in the first images, everything else is unknown."""
    (folder / "images").mkdir(parents=True)
    lines = ["image,split," + ",".join(CATEGORIES)]
    rng = np.random.default_rng(0)
    for number in range(count):
        picture = Image.new("RGB", size, (225, 222, 214))
        for place, colour in enumerate(COLOURS):
            if rng.random() < 0.6:
                left, top = int(rng.integers(0, size[0] * 2 // 3)), int(rng.integers(0, size[1] * 2 // 3))
                picture.paste(colour, (left, top, left + size[0] // 4 + place, top + size[1] // 3))
        picture.save(folder / "images" / f"{number}.png")
        lines.append(f"images/{number}.png,train,{'1' if number < 3 else ''},,,")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def photo_suggestions(count: int = 10) -> list[dict]:
    """One per unknown entry of `write_photos`, probabilities all different."""
    rows = []
    for number in range(count):
        for place, category in enumerate(CATEGORIES):
            if category == "keyboard" and number < 3:
                continue
            p = round(0.03 + 0.94 * ((7 * number + 13 * place) % 41) / 41, 3)
            decision = "present" if p > 0.8 else "absent" if p < 0.2 else "unknown"
            rows.append(
                {
                    "image": f"images/{number}.png",
                    "category": category,
                    "probability": p,
                    "decision": decision,
                    "origin": ORIGINS[(number + place) % 5] if decision != "unknown" else "none",
                    "score": round(p * 0.9, 3),
                    "intra": p if number < 3 else None,
                    "intra_because": json.dumps([{"category": "keyboard", "p": p}] if number < 3 else []),
                    "cross": 0.7,
                    "cross_because": json.dumps(
                        [{"image": f"images/{near}.png", "similarity": 0.9 - near / 10} for near in range(3)]
                    ),
                }
            )
    return rows


def many_suggestions(count: int, categories: int = 80, seed: int = 0, first: int = 0) -> tuple[pa.Table, Names]:
    """`count` rows over as many images as it takes, from entry `first` on, and the names they use."""
    rng = np.random.default_rng(seed)
    images = [f"images/{first // categories + number:07d}.jpg" for number in range(-(-count // categories))]
    names = [f"category {number}" for number in range(categories)]
    place = np.arange(count)
    p = rng.beta(0.3, 0.9, count).astype(np.float32)
    kind = np.where(p > 0.85, 0, np.where(p < 0.1, 1, 2))
    because = [json.dumps([{"category": "category 3", "p": round(i / 16, 2)}]) for i in range(16)]
    alike = [json.dumps([{"image": images[i % len(images)], "similarity": 0.8}] * 3) for i in range(16)]
    columns = {
        "image": pa.DictionaryArray.from_arrays((place // categories).astype(np.int32), images).cast(pa.string()),
        "category": pa.DictionaryArray.from_arrays((place % categories).astype(np.int32), names).cast(pa.string()),
        "probability": p,
        "decision": pa.DictionaryArray.from_arrays(kind.astype(np.int8), list(DECISIONS)).cast(pa.string()),
        "origin": pa.DictionaryArray.from_arrays(rng.integers(0, 5, count).astype(np.int8), list(ORIGINS)).cast(
            pa.string()
        ),
        "score": p,
        "intra": p,
        "intra_because": pa.DictionaryArray.from_arrays((place % 16).astype(np.int8), because).cast(pa.string()),
        "cross": p,
        "cross_because": pa.DictionaryArray.from_arrays((place % 16).astype(np.int8), alike).cast(pa.string()),
    }
    return pa.table(columns, schema=SCHEMA), Names(images, names, rng.integers(0, 500, categories))


class GradientAttention:
    """Looks at the bottom right."""

    def __init__(self, available: bool = True):
        self.available = available

    def grid(self, image: int, category: int) -> list[list[float]]:
        if not self.available:
            raise NoAttentionError("plain has no attention maps")
        return [[row * column / 9 for column in range(4)] for row in range(4)]

    def warm_up(self) -> None:
        pass


def make_review(folder: Path, rows: list[dict] | None = None, count: int = 10) -> tuple[Place, Review]:
    """A review of photos in `folder`; made again on the same folder, it goes on where it was."""
    if not (folder / "data").is_dir():
        write_photos(folder / "data", count)
        found = photo_suggestions(count) if rows is None else rows
        write_suggestions(suggestion_table(found), folder / "completion" / "suggestions.parquet")
    data = open_data(str(folder / "data"))
    table = data.table
    file = folder / "completion" / "suggestions.parquet"
    place = Place(folder / "run", data, table, file, folder / "completion" / "review.sqlite", None)
    names = Names(table.images, table.categories, (table.values == 1).sum(0))
    index = open_index(file, names, folder / "cache")
    return place, Review(index, names, Decisions(place.db))


def make_app(place: Place, review: Review, policy: Policy | None = None, attention: bool = True):
    parts = Parts(
        review=review,
        pictures=Pictures(place.data.images, place.data.table.images),
        attention=GradientAttention(attention),  # type: ignore[arg-type]
        export=place.export,
        labels_csv=place.labels_csv,
        order="confident",
        data="photos",
        run="hst",
        suggestions=str(place.suggestions),
    )
    return create_app(parts, policy or Policy())
