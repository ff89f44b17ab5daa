"""The public API has types that a strict type checker accepts in somebody else's program, and uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fewtags

ROOT = Path(__file__).parent.parent
CONSUMER = Path(__file__).with_name("consumer.py")


def mypy(code: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What fewtags itself imports is not looked at: a consumer checks their own program."""
    settings = folder / "mypy.ini"
    heavy = ("torch", "numpy", "torchvision", "lightning", "timm", "pandas", "pyarrow", "scipy", "sklearn", "rich")
    skipped = "\n".join(f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in heavy)
    settings.write_text(f"[mypy]\nfollow_imports = silent\nignore_missing_imports = True\n{skipped}")
    options = ["--strict", f"--config-file={settings}", f"--cache-dir={folder / 'cache'}"]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(code)],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def test_a_strict_program_passes(folder: Path):
    answer = mypy(CONSUMER, folder)
    assert answer.returncode == 0, answer.stdout


def test_mistakes_in_a_program_are_found(folder: Path):
    """So the types are really seen, and not Any."""
    wrong = folder / "wrong.py"
    wrong.write_text(
        "import fewtags\n"
        "run: str = fewtags.train('photos', out='run')\n"
        "fewtags.load(3)\n"
        "fewtags.load('run').predict('a.jpg', top='3')\n"
        "fewtags.evaluate('run', 'photos')['mAP'] + fewtags.__version__.no\n"
    )
    answer = mypy(wrong, folder)
    lines = sorted({int(line.split(":")[1]) for line in answer.stdout.splitlines() if ": error:" in line})
    assert lines == [2, 3, 4, 5], answer.stdout


def test_the_package_says_that_it_has_types():
    assert (Path(fewtags.__file__).parent / "py.typed").is_file()


def test_everything_public_is_there():
    assert [name for name in fewtags.__all__ if not hasattr(fewtags, name)] == []
    assert {"train", "load", "evaluate", "Recipe", "Tagger", "Tag", "UserError"} <= set(fewtags.__all__)
