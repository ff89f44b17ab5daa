"""The cells of a sweep: data × method × known × seed, and how they are written on the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewtags.errors import UserError
from fewtags.methods.variants import definition, method_class


@dataclass(frozen=True)
class Block:
    """A part of a sweep: every one of these methods at every one of these proportions with each seed."""

    methods: tuple[str, ...]
    known: tuple[float, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Cell:
    """One run."""

    data: str
    """Its short name, as in results.csv."""
    spec: str
    """DATA as it was given."""
    method: str
    known: float
    seed: int

    @property
    def key(self) -> dict[str, Any]:
        return {"data": self.data, "method": self.method, "known": self.known, "seed": self.seed}

    @property
    def folder(self) -> str:
        return file_name(f"{self.data}_{self.method}_{self.known:g}_{self.seed}")

    def __str__(self) -> str:
        return f"{self.data}  {self.method}  known {self.known:g}  seed {self.seed}"


def cells(data: Sequence[str], blocks: Iterable[Block]) -> list[Cell]:
    """Each cell once, in the order to run them: a proportion and seed is finished for all methods before the next.

    A method whose definition fixes `known` (full_labels) is one cell per seed, whatever the proportions.
    """
    made = [
        Cell(name, spec, method, float(definition(method).get("known", known)), seed)
        for name, spec in named(data).items()
        for block in blocks
        for known in block.known
        for seed in block.seeds
        for method in block.methods
    ]
    return list(dict.fromkeys(made))


def named(data: Sequence[str]) -> dict[str, str]:
    """Short name → DATA."""
    if not data:
        raise UserError("no data: give at least one DATA, such as scenes, a folder, or voc2007:PATH")
    names: dict[str, str] = {}
    for spec in data:
        name = short_name(spec)
        if name in names:
            raise UserError(f"{names[name]} and {spec} are both called {name!r} in results.csv: sweep them apart")
        names[name] = spec
    return names


def short_name(spec: str) -> str:
    """`voc2007` of voc2007:PATH, a folder's name, `scenes` with its options: no path of this machine."""
    from fewtags.data import FORMATS

    kind, _, rest = spec.partition(":")
    if kind in FORMATS:
        return kind
    if kind == "scenes":
        return file_name("-".join(["scenes", *rest.replace("=", "").split(",")]).rstrip("-"))
    return Path(os.path.abspath(spec)).name  # as the user calls it: a link keeps its own name


def file_name(text: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", text)


def parse_methods(text: str) -> tuple[str, ...]:
    names = _parts(text, "--methods")
    for name in names:
        method_class(name)  # says what is close to an unknown name
    return names


def parse_known(text: str) -> tuple[float, ...]:
    shares = tuple(_number(part, float, "--known") for part in _parts(text, "--known"))
    for share in shares:
        if not 0 < share <= 1:
            raise UserError(f"--known {share:g}: a share of the labels lies above 0 and is at most 1")
    return shares


def parse_seeds(text: str) -> tuple[int, ...]:
    seeds = tuple(_number(part, int, "--seeds") for part in _parts(text, "--seeds"))
    if min(seeds) < 0:
        raise UserError(f"--seeds {min(seeds)}: a seed is 0 or more")
    return seeds


def _parts(text: str, flag: str) -> tuple[str, ...]:
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not parts:
        raise UserError(f"{flag}: nothing is given; write values separated by commas")
    return parts


def _number(text: str, kind: type, flag: str) -> Any:
    try:
        return kind(text)
    except ValueError as problem:
        raise UserError(f"{flag} {text}: not a {'whole ' if kind is int else ''}number") from problem
