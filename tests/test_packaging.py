"""Wheel and sdist: nothing missing, no junk, and the wheel works in a new environment, outside of this folder.

Slow, so `make dist` runs them: the last one installs every dependency from the registry.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import fewtags

pytestmark = pytest.mark.torture
ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fewtags"
NAME = f"fewtags-{fewtags.__version__}"


def run(*words: object, cwd: Path) -> str:
    """Without what points to this folder; its output."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    answer = subprocess.run(list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both, from what git knows: the sdist, and the wheel that is made of it."""
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    files = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", source, cwd=folder)
    return folder / "dist"


def test_the_wheel_has_all_of_the_package_and_nothing_else(built: Path):
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        inside = {name for name in wheel.namelist() if not name.startswith(f"{NAME}.dist-info/")}
        about = wheel.read(f"{NAME}.dist-info/METADATA").decode()
        assert f"{NAME}.dist-info/licenses/LICENSE" in wheel.namelist()
    kept = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert inside == {path.relative_to(ROOT).as_posix() for path in kept}
    for wanted in ("py.typed", "recipes/default.yaml", "review/static", "review/templates", "report/templates"):
        assert any(name.startswith(f"fewtags/{wanted}") for name in inside), wanted
    assert any(name.endswith(".csv") for name in inside)
    assert "Requires-Python: >=3.11" in about
    assert "License-Expression: Apache-2.0" in about


def test_the_sdist_has_the_tests_and_no_junk(built: Path):
    with tarfile.open(built / f"{NAME}.tar.gz") as sdist:
        names = [member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()]
    for wanted in ("LICENSE", "CHANGELOG.md", "constraints.txt", "tests/conftest.py", "docs/index.md", "Makefile"):
        assert wanted in names
    junk = ("__pycache__", ".pyc", ".venv", "runs/", ".git/", ".hypothesis", ".mypy_cache", "site/", "data/")
    assert [name for name in names if any(part in f"/{name}" for part in (f"/{word}" for word in junk))] == []
    assert sum(name.endswith((".pyc", ".npy", ".safetensors")) for name in names) == 0


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; libraries are those of this one, by their path alone."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        wheel.extractall(packages)
    ours = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (packages / "libraries.pth").write_text(f"{ours}\n")
    return folder / "bin" / "python"


def test_the_wheel_works_outside_of_the_folder(installed: Path, tmp_path: Path):
    where = run(installed, "-c", "import fewtags; print(fewtags.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(installed.parents[1])
    fewtags_of = (installed, "-m", "fewtags")
    assert run(*fewtags_of, "--version", cwd=tmp_path).strip() == f"fewtags {fewtags.__version__}"
    assert "train" in run(*fewtags_of, "--help", cwd=tmp_path)
    data = "scenes:train=24,test=8,size=64"
    tiny = ("--set", "image_size=64", "--epochs", 1, "--method", "plain", "--known", 0.5, "--out", "run")
    assert "mAP" in run(*fewtags_of, "train", data, *tiny, cwd=tmp_path)
    assert (tmp_path / "run" / "report.html").is_file()
    assert "hst" in run(*fewtags_of, "methods", cwd=tmp_path)


@pytest.mark.skipif("FEWTAGS_FRESH" not in os.environ, reason="downloads gigabytes: FEWTAGS_FRESH=1 make dist")
def test_the_wheel_installs_with_all_it_needs(built: Path, tmp_path: Path):
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    pins = ("-c", ROOT / "constraints.txt")
    run(python, "-m", "pip", "install", "--quiet", *pins, built / f"{NAME}-py3-none-any.whl", cwd=tmp_path)
    assert "No broken requirements" in run(python, "-m", "pip", "check", cwd=tmp_path)
    script = tmp_path / "fresh" / "bin" / "fewtags"
    assert "train" in run(script, "--help", cwd=tmp_path)
    tiny = ("--epochs", 1, "--method", "plain", "--known", 0.5, "--out", "run")
    assert "mAP" in run(script, "train", "scenes:train=24,test=8", *tiny, cwd=tmp_path)
