"""What goes into a run today against what went in when it was trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from fewtags.data import Data
from fewtags.errors import UserError
from fewtags.recipe import Recipe
from fewtags.reproduction.data_differences import data_differences
from fewtags.reproduction.fingerprint import FILE
from fewtags.reproduction.record import Environment, Record, environment, files_read, known_hash
from fewtags.training.prepare import choose_device, prepare_labels

OF_THE_MACHINE = ("device", "workers", "threads")
"""Settings that are no part of a recipe's hash."""


@dataclass(frozen=True)
class Inputs:
    """What went in: sentences on what is not as it was."""

    recorded: bool
    """The run has a record to compare with."""
    data: list[str]
    recipe: list[str]
    environment: list[str]
    """Only a warning: another version may still compute the same."""

    @property
    def same(self) -> bool:
        return not self.data and not self.recipe


def as_recorded(recipe: Recipe, record: Record | None) -> Recipe:
    """The recipe on as many threads as then, and on the same kind of device where there is one."""
    if record is None:
        return recipe
    device = record.environment.machine.get("device", recipe.device)
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    here = device if available.get(device) else "auto"
    return recipe.replace(threads=record.environment.threads, device=here)


def compare_inputs(run: Path, recipe: Recipe, record: Record | None, data: Data) -> Inputs:
    """Data, recipe, files and versions of today against the record."""
    if record is None:
        return Inputs(False, [], [], [])
    fingerprint = run / FILE
    if not fingerprint.is_file():
        raise UserError(f"{fingerprint}: missing; without it nobody can tell whether the data are the same")
    changed = data_differences(fingerprint, data.table, data.images)
    settings = recipe_differences(record, recipe)
    if not changed and not settings and known_hash(prepare_labels(data, recipe).known) != record.known:
        changed = ["this version of fewtags hides or holds out other labels with the same seed"]
    now = environment(choose_device(as_recorded(recipe, record).device))
    return Inputs(True, changed + file_differences(record, recipe), settings, environment_differences(record, now))


def recipe_differences(record: Record, recipe: Recipe) -> list[str]:
    """Settings of recipe.yaml that are not what the run was started with."""
    now = recipe.model_dump(mode="json")
    then = Recipe().model_dump(mode="json") | record.recipe  # settings that are new since had their default
    return [
        f"{name}: {then[name]!r} when trained, {now.get(name)!r} in recipe.yaml"
        for name in then
        if name not in OF_THE_MACHINE and then[name] != now.get(name)
    ]


def file_differences(record: Record, recipe: Recipe) -> list[str]:
    now = files_read(recipe, record.init)
    names = {"words": recipe.words, "backbone_weights": recipe.backbone_weights, "init": record.init}
    return [
        f"{role}: {names.get(role)} {'has another content' if role in now else 'is not there'}"
        for role, was in record.files.items()
        if now.get(role) != was
    ]


def environment_differences(record: Record, now: Environment) -> list[str]:
    was = record.environment
    lines = [
        f"{name}: {before} when trained, {now.versions.get(name, 'not installed')} now"
        for name, before in was.versions.items()
        if now.versions.get(name) != before
    ]
    lines += [
        f"{name}: {before} when trained, {now.machine.get(name, 'none')} now"
        for name, before in was.machine.items()
        if now.machine.get(name) != before
    ]
    if was.processes != now.processes:
        lines.append(f"processes: {was.processes} when trained, {now.processes} now")
    if was.code != now.code:
        lines.append(f"fewtags' source has changed since ({was.code} when trained, {now.code} now)")
    if record.resumed:
        lines.append("it was resumed with other versions or on another machine")
    return lines
