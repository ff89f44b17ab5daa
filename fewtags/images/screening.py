"""Which images cannot be read (`--on-bad-image skip`): every one is decoded once, and what was found is kept.

The rows of bad images leave the label table before anything else looks at it, so no label can move to another
image. Found out anew only when an image's stamp changes.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import PIL

from fewtags.errors import BadImageError, UserError
from fewtags.files import write_text
from fewtags.images.cache import cache_folder
from fewtags.images.loading import ImageSource

SKIPPED = "skipped_images.csv"
MOST_NAMED = 20


class Skipped(NamedTuple):
    image: str
    reason: str


def unreadable(images: Sequence[str], source: ImageSource) -> list[Skipped]:
    """Those of the images that cannot be decoded, in order."""
    memo = cache_folder() / f"unreadable-{_key(images, source)}.json"
    try:
        return [Skipped(image, reason) for image, reason in json.loads(memo.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        found = _decoded_all(images, source)
        with contextlib.suppress(OSError, UserError):  # the next command decodes them again
            write_text(memo, json.dumps(found))
        return found


def _decoded_all(images: Sequence[str], source: ImageSource) -> list[Skipped]:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        reasons = threads.map(lambda image: _problem(image, source), images)
        return [Skipped(image, reason) for image, reason in zip(images, reasons, strict=True) if reason]


def _problem(image: str, source: ImageSource) -> str | None:
    try:
        source.open(image)
    except BadImageError as problem:
        return str(problem)
    return None


def _key(images: Sequence[str], source: ImageSource) -> str:
    stamps = "\0".join(f"{image}\0{_stamp(image, source)}" for image in images)
    return hashlib.sha256(f"{PIL.__version__}\0{source_name(source)}\0{stamps}".encode()).hexdigest()[:20]


def _stamp(image: str, source: ImageSource) -> str:
    try:
        return source.stamp(image)
    except BadImageError:
        return ""


def source_name(source: ImageSource) -> str:
    """Reasons name files, so that two folders with equal files are two."""
    return str(Path(getattr(source, "root", "")).resolve())


def told(skipped: Sequence[Skipped]) -> str:
    """What a person is told of them."""
    count = (
        "1 image cannot be read and is" if len(skipped) == 1 else f"{len(skipped)} images cannot be read and are"
    )
    lines = [f"{count} left out:", *(f"  - {entry.reason}" for entry in skipped[:MOST_NAMED])]
    if len(skipped) > MOST_NAMED:
        lines.append(f"  ... and {len(skipped) - MOST_NAMED} more")
    return "\n".join(lines)


def write_skipped(skipped: Sequence[Skipped], file: Path) -> None:
    """CSV of image and reason; no file where nothing was left out, nor one from before."""
    if not skipped:
        return file.unlink(missing_ok=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([Skipped._fields, *skipped])
    write_text(file, text.getvalue())
