"""A run folder of a stranger: nothing in it is executed, nothing outside of it is read or written, nothing huge is
made. Each attack ends in a UserError, and the trap that it carries stays shut."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.untrusted.trap import TRAP


@pytest.fixture(autouse=True)
def _trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every test runs where the trap would be seen, and fails if it was sprung."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield
    assert not (tmp_path / "here" / TRAP).exists(), "code from a model folder was executed"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))
