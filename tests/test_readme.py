"""What the README tells people to type works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from tests.command import fewtags as command
from tests.conftest import write_colours

README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder `photos` with labelled images, one of them 1.jpg."""
    data = write_colours(tmp_path / "photos", train=20, test=6, unknown=0.3)
    Image.open(data / "images" / "000.png").save(data / "1.jpg")
    return data


def test_python_lines_run(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[")


def test_shell_lines_run(photos: Path, tmp_path: Path):
    labels = pd.read_csv(photos / "labels.csv", dtype=str).rename(
        columns={"red": "dog", "green": "cat", "blue": "car"}
    )
    (photos / "labels.csv").unlink()
    (tmp_path / "new-photos").mkdir()
    (photos / "1.jpg").rename(tmp_path / "new-photos" / "1.jpg")
    (lines,) = [block for block in blocks("") if "fewtags new" in block]
    for line in lines.strip().splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "$EDITOR":
            labels[["image", "dog", "cat", "car"]].to_csv(photos / "labels.csv", index=False)
            continue
        answer = command(*words[1:], cwd=tmp_path)
        assert answer.returncode == 0, (line, answer.stderr)
    assert (tmp_path / "tags.csv").is_file()


def test_every_command_of_the_readme_exists():
    commands = set(re.findall(r"`fewtags (\w+)", README))
    shown = command("--help").stdout
    assert commands
    assert all(f" {name} " in shown for name in commands)


def test_every_file_of_the_readme_exists():
    root = Path(__file__).parent.parent
    files = re.findall(r"\]\((docs/[^)]+)\)", README)
    assert files
    assert [name for name in files if not (root / name).is_file()] == []
