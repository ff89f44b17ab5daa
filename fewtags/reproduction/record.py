"""RUN/record.json: what a run was made from and with, written when training starts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from fewtags.data import Data
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.processes import together
from fewtags.recipe import Recipe
from fewtags.reproduction.environment import code_hash, machine, versions
from fewtags.reproduction.fingerprint import FILE, ROWS_AT_ONCE, write_fingerprint
from fewtags.training.data import KnownLabels

RECORD = "record.json"
READ_AT_ONCE = 2**20


class Environment(BaseModel):
    versions: dict[str, str]
    code: str
    """Short name of fewtags' source."""
    machine: dict[str, str]
    threads: int
    """Of torch: sums over several threads are rounded in another order than over one."""
    processes: int = 1
    """That trained together."""


class Record(BaseModel):
    model_config = ConfigDict(extra="ignore")

    environment: Environment
    resumed: list[Environment] = []
    """Where it went on after an interruption, if something was different there."""
    seed: int
    recipe_hash: str
    recipe: dict[str, Any]
    """All settings, to name those that were changed in recipe.yaml afterwards."""
    data: str
    labels: str
    """Short name of images, splits and labels; data.parquet has them all."""
    images: str
    """Short name of the image files."""
    known: str
    """Short name of the labels that training saw, and of those held out."""
    files: dict[str, str]
    """Short names of other files that were read: word vectors, weights, the run it started from."""
    init: str | None = None


def environment(device: torch.device) -> Environment:
    return Environment(
        versions=versions(),
        code=code_hash(),
        machine=machine(device),
        threads=torch.get_num_threads(),
        processes=together.size(),
    )


def write_record(
    run: Path,
    recipe: Recipe,
    spec: str,
    data: Data,
    known: KnownLabels,
    init: str | Path | None,
    device: torch.device,
    resume: bool = False,
) -> Record:
    """Write record.json and data.parquet; a run that is resumed keeps them, and notes what is different now."""
    now = environment(device)
    before = read_record(run) if resume else None
    if before is not None:
        return _noted(run, before, now)
    fingerprint = write_fingerprint(run / FILE, data.table, data.images)
    record = Record(
        environment=now,
        seed=recipe.seed,
        recipe_hash=recipe.hash(),
        recipe=recipe.model_dump(mode="json"),
        data=spec,
        labels=fingerprint.labels,
        images=fingerprint.images,
        known=known_hash(known),
        files=files_read(recipe, init),
        init=None if init is None else str(init),
    )
    _write(run, record)
    return record


def read_record(run: Path) -> Record | None:
    """None if there is none: the run was made before runs were recorded."""
    path = run / RECORD
    if not path.is_file():
        return None
    try:
        return Record.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as problem:
        raise UserError(f"{path}: damaged or not written by fewtags: {problem}") from problem


def known_hash(known: KnownLabels) -> str:
    """Short name of the mask: what is known, what is held out. Sparse labels have that of dense ones."""
    content = hashlib.sha256()
    held_out = known.labels[:0] if known.held_out is None else known.held_out
    for role, labels in (("known", known.labels), ("held out", held_out)):
        content.update(role.encode())
        for start in range(0, len(labels), ROWS_AT_ONCE):
            content.update(np.ascontiguousarray(labels[start : start + ROWS_AT_ONCE], dtype=np.int8).tobytes())
    return content.hexdigest()[:16]


def files_read(recipe: Recipe, init: str | Path | None) -> dict[str, str]:
    """Short names of the files that a recipe names, by what they are for."""
    named = {"words": recipe.words, "backbone_weights": recipe.backbone_weights}
    if init is not None:
        named["init"] = str(Path(init) / "model.safetensors")
    return {role: file_hash(Path(name)) for role, name in named.items() if name and Path(name).is_file()}


def file_hash(path: Path) -> str:
    content = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(READ_AT_ONCE):
            content.update(part)
    return content.hexdigest()[:16]


def _noted(run: Path, record: Record, now: Environment) -> Record:
    if now in (record.environment, *record.resumed):
        return record
    record = record.model_copy(update={"resumed": [*record.resumed, now]})
    _write(run, record)
    return record


def _write(run: Path, record: Record) -> None:
    write_text(run / RECORD, json.dumps(record.model_dump(), indent=1, ensure_ascii=False) + "\n")
