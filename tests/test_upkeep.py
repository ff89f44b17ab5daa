"""What a release rests on: one version, a changelog that knows it, hooks that run, declared Pythons."""

from __future__ import annotations

import ast
import datetime
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import fewtags
from tests.command import fewtags as command
from tests.coverage_line import coverage_line, with_line

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SEMANTIC = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?"


def test_the_version_is_semantic_and_in_one_place():
    assert re.fullmatch(SEMANTIC, fewtags.__version__)
    assert command("--version").stdout.strip() == f"fewtags {fewtags.__version__}"
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "fewtags.__version__"}


def test_the_changelog_has_the_version_and_is_in_order():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(rf"\[{SEMANTIC}\] - \d{{4}}-\d\d-\d\d", heading) for heading in headings[1:])
    versions = [re.match(r"\[(.*?)\]", heading)[1] for heading in headings[1:]]  # type: ignore[index]
    assert fewtags.__version__ in versions
    numbers = [tuple(map(int, version.partition("-")[0].split("."))) for version in versions]
    assert numbers == sorted(numbers, reverse=True)
    kinds = set(re.findall(r"^### (.*)$", text, flags=re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_licence_is_apache_2():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert PROJECT["project"]["license"] == "Apache-2.0"


def test_hooks_are_local_and_pass():
    """Each runs a tool of the environment on a file that is in order, and fails on one that is not."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [entry["repo"] for entry in config["repos"]] == ["local"]
    hooks = {hook["id"]: hook["entry"] for entry in config["repos"] for hook in entry["hooks"]}
    assert set(hooks) == {"ruff-check", "ruff-format", "mypy"}
    for name in ("ruff-check", "ruff-format"):
        program, *flags = shlex.split(hooks[name])
        tool = [str(Path(sys.executable).parent / Path(program).name), *flags]
        assert subprocess.run([*tool, "fewtags/errors.py"], cwd=ROOT, capture_output=True).returncode == 0
        bad = subprocess.run([*tool, "-"], input=b"import os;x = [ 1 ]\n", cwd=ROOT, capture_output=True)
        assert bad.returncode == 1


def test_declared_pythons_are_those_that_are_allowed():
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert declared == ["3.11", "3.12", "3.13", "3.14"]


def test_the_oldest_python_understands_the_syntax():
    for path in sorted((ROOT / "fewtags").rglob("*.py")):
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 11))
    assert PROJECT["tool"]["ruff"]["target-version"] == "py311"
    assert PROJECT["tool"]["mypy"]["python_version"] == "3.11"


def test_every_pinned_library_is_named_once():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    names = [line.partition("==")[0].lower().replace("_", "-") for line in lines]
    assert all("==" in line for line in lines)
    assert len(names) == len(set(names))


def test_the_line_on_coverage(tmp_path: Path):
    totals = {"covered_branches": 3, "num_branches": 4, "covered_lines": 9, "num_statements": 10}
    line = coverage_line({"totals": totals}, datetime.date(2026, 11, 16))
    assert line == "Coverage: 90.0 % of lines, 75.0 % of branches (`make coverage`, 2026-11-16)."
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert line in with_line(page, line)
    assert with_line(with_line(page, line), "x") == with_line(page, "x")
    with pytest.raises(ValueError, match="no place"):
        with_line("nothing here", line)
