"""Small files on disk for the tests of formats."""

from __future__ import annotations

from pathlib import Path

from PIL import Image


def picture(path: Path, side: int = 8) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), (sum(path.name.encode()) % 256, 90, 30)).save(path)
    return path


def pictures(root: Path, names: list[str]) -> None:
    for name in names:
        picture(root / name)


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path
