"""Damaged label files: read rightly, or refused with one message that names the file. Nothing in between.

A hundred or two are tried at every test run, and 1,200 by `make torture`.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fewtags.data import open_data
from fewtags.errors import UserError
from tests.bad_input.damage import damaged
from tests.bad_input.data_sets import FORMS, copied, label_files, make
from tests.oracles.label_files import READERS, Said

USUAL = ["csv"] * 6 + [name for name in FORMS if name != "csv"]
"""More than a third is our own CSV."""
LONGEST = 20


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bases")
    return {name: make(name, folder / name) for name in FORMS}


@contextmanager
def no_hang(seconds: int = LONGEST) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read(name: str, root: Path) -> Said:
    """image → category → ±1, as fewtags reads it."""
    table = open_data(f"{FORMS[name].prefix}{root}").table
    rows = zip(table.images, table.values.tolist(), strict=True)
    return {image: {c: v for c, v in zip(table.categories, row, strict=True) if v} for image, row in rows}


def try_one(seed: int, bases: dict[str, Path], folder: Path) -> str:
    """Damage one label file and read it; returns `read` or `refused`, anything else is an error."""
    rng = random.Random(seed)
    name = USUAL[seed % len(USUAL)]
    root = copied(bases[name], folder / f"{seed:05d}")
    file = rng.choice(label_files(root))
    how, content = damaged(file.read_bytes(), file.suffix, rng)
    file.write_bytes(content)
    about = f"seed {seed}: {how} of {name} {file.relative_to(root)}: {content[:300]!r}"
    found = attempt(name, root, about)
    if isinstance(found, UserError):
        assert root.name in str(found), f"{about}: {found}"
        assert len(str(found)) < 20_000, about
        if name == "csv":
            assert oracle(name, root) is None, f"{about}: refused, though nothing is wrong: {found}"
        return "refused"
    assert found == oracle(name, root), about
    return "read"


def attempt(name: str, root: Path, about: str) -> Said | UserError:
    try:
        with no_hang():
            return read(name, root)
    except UserError as problem:
        return problem
    except Exception as problem:
        raise AssertionError(f"{about}: {type(problem).__name__}: {problem}") from problem


def oracle(name: str, root: Path) -> Said | None:
    """None: it makes no sense."""
    try:
        return READERS[name](root)
    except Exception:
        return None


@pytest.mark.parametrize("name", FORMS)
def test_undamaged_files_say_what_the_oracle_reads(name: str, bases: dict[str, Path]):
    said = read(name, bases[name])
    assert said == READERS[name](bases[name])
    assert {value for row in said.values() for value in row.values()} == set(FORMS[name].values) - {0}


def test_a_sample_of_damaged_label_files(bases: dict[str, Path], tmp_path: Path):
    ends = [try_one(seed, bases, tmp_path) for seed in range(192)]
    assert set(ends) == {"read", "refused"}


@pytest.mark.torture
def test_1200_damaged_label_files(bases: dict[str, Path], tmp_path: Path):
    ends = [try_one(seed, bases, tmp_path) for seed in range(1000, 2200)]
    print(f"\n1,200 damaged label files: {ends.count('read')} read rightly, {ends.count('refused')} refused")
    assert min(ends.count(end) for end in ("read", "refused")) > 100
