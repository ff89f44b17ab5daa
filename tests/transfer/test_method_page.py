"""docs/method.md names files and tests: they must exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = sorted(set(re.findall(r"`([^`\n]+)`", (ROOT / "docs" / "method.md").read_text(encoding="utf-8"))))


@pytest.mark.parametrize("name", [name for name in NAMED if name.endswith(".py")])
def test_files_exist(name):
    assert (ROOT / name).is_file() or (ROOT / "fewtags" / name).is_file()


def test_tests_exist():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    missing = [name for name in NAMED if name.startswith("test_") and f"def {name}(" not in source]
    assert not missing
    assert sum(name.startswith("test_") for name in NAMED) > 20
