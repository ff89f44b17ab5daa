"""The documentation works: its Python runs, its commands run or are at least parsed, its links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
import yaml
from PIL import Image
from typer.testing import CliRunner

from fewtags.cli import app
from fewtags.recipe import SHIPPED, Recipe
from tests.conftest import COLOURS, TINY, write_colours
from tests.pages import PAGES, PROGRAMS, ROOT, Block, blocks

ALL = [block for page in PAGES for block in blocks(page)]
TESTED_ELSEWHERE = {"README.md": "test_readme.py", "data.md": "test_data_page.py and test_data.py"}
PLACEHOLDERS = {"WEIGHT": "0.1", "N": "3", "METHOD": "plain", "FORMAT": "coco", "FORMAT:DEST": "coco:DEST"}
PLACEHOLDERS |= {"$resume": "--resume"}
MAKE_TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
COMMAND = typer.main.get_command(app)
UsageError = typer.BadParameter.__mro__[1]  # of Typer's own copy of Click


def filled(words: list[str]) -> list[str]:
    """`--known 0.1` for `[--known 0.1]`, and something for what stands for something."""
    plain = [unbracketed(word).removesuffix("...") for word in words]
    return [PLACEHOLDERS.get(word, word) for word in plain if word]


def unbracketed(word: str) -> str:
    word = word.removeprefix("[")
    return word if "[" in word else word.removesuffix("]")


def parse(words: list[str]) -> None:
    """As the command line does, without running it."""
    command: Any = COMMAND
    name, rest = words[0], words[1:]
    while hasattr(command, "commands"):
        command, name, rest = command.commands[rest[0]], rest[0], rest[1:]
        if hasattr(command, "commands") and not rest:
            return
    command.make_context(name, list(rest))


@pytest.mark.parametrize("block", [block for block in ALL if block.commands], ids=str)
def test_every_command_exists_with_its_flags(block: Block):
    for words in block.commands:
        assert words[0] in PROGRAMS or words[0] == "export" or "=" in words[0], f"{block}: what is {words[0]}?"
        if "fewtags" in words:  # itself, or started by torchrun or srun
            parse(filled(words[words.index("fewtags") :]))
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= MAKE_TARGETS, block
        if words[:2] == ["python", "-m"]:
            assert find_spec(words[2]) is not None, block


def test_a_wrong_flag_would_be_found():
    with pytest.raises(UsageError):
        parse(["fewtags", "train", "photos", "--no-such-flag"])
    with pytest.raises(UsageError):
        parse(["fewtags", "train", "photos", "--epochs", "many"])


@pytest.fixture(scope="module")
def material(trained: Path, exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages speak of: photos, runs, a file of word vectors, recipes that train in a moment."""
    folder = tmp_path_factory.mktemp("pages")
    photos = write_colours(folder / "photos", train=24, test=8, unknown=0.2)
    sample = write_colours(folder / "data" / "coco-sample", train=32, test=8)
    for name in ("1.jpg", "2.jpg", "photo.jpg"):
        Image.open(photos / "images" / "000.png").save(folder / name)
    shutil.copytree(photos, folder / "my-photos")
    tags = shutil.copytree(sample, folder / "data" / "coco-tags") / "labels.csv"
    lines = tags.read_text().splitlines()
    tags.write_text("\n".join(re.sub(r"(?<=,)0\b", "", line) if ",train," in line else line for line in lines))
    for name in ("mine", "photos"):
        shutil.copytree(trained, folder / "runs" / name)
    shutil.copy(exported, folder / "tagger.onnx")
    vectors = np.random.default_rng(0).normal(size=(len(COLOURS), 6)).astype(np.float32)
    np.savez(folder / "coco80.npz", names=np.array(list(COLOURS)), vectors=vectors)
    for recipe in SHIPPED.glob("*.yaml"):
        small = Recipe.load(recipe).replace(**TINY)
        (folder / "recipes").mkdir(exist_ok=True)
        (folder / "recipes" / recipe.name).write_text(small.to_yaml())
    return folder


def to_run(page: Path) -> list[Block]:
    if page.name in TESTED_ELSEWHERE:
        return []
    wanted = (block for block in blocks(page) if block.not_run is None)
    return [block for block in wanted if block.kind == "python" or _runnable(block)]


def _runnable(block: Block) -> bool:
    return any(words[0] == "fewtags" for words in block.commands)


def serves(words: list[str]) -> bool:
    """Until it is stopped."""
    return words[1] == "serve" or (words[1] == "review" and "--export" not in words)


def run(words: list[str], block: Block) -> None:
    if words[1] == "train" and "--out" in words:  # in place of the one that other pages find there
        shutil.rmtree(words[words.index("--out") + 1], ignore_errors=True)
    answer = CliRunner().invoke(app, words[1:])
    assert answer.exit_code == 0, (str(block), words, answer.output, answer.exception)


@pytest.mark.parametrize("page", [page for page in PAGES if to_run(page)], ids=lambda page: page.name)
def test_what_a_page_shows_runs_in_its_order(
    page: Path, material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = Path(shutil.copytree(material, tmp_path / "here"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr("fewtags.recipe.SHIPPED", folder / "recipes")
    monkeypatch.setenv("FEWTAGS_CACHE", str(tmp_path / "cache"))
    names: dict[str, object] = {}
    for block in to_run(page):
        if block.kind == "python":
            exec(compile(block.text, str(block), "exec"), names)
        for words in block.commands:
            if words[0] == "fewtags" and not serves(words):
                run(filled(words), block)


def test_a_reason_is_given_for_each_block_that_is_not_run():
    skipped = [block for block in ALL if block.not_run is not None]
    assert skipped
    assert [str(block) for block in skipped if not (block.kind == "python" or block.commands)] == []


def test_the_site_builds_without_a_warning(tmp_path: Path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    arguments = [*build, "--site-dir", str(tmp_path / "site")]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    answer = subprocess.run(arguments, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "WARNING" not in answer.stderr
    pages = [page.read_text(encoding="utf-8") for page in (tmp_path / "site").glob("*.html")]
    loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]+)"', "".join(pages))
    assert loaded == []  # nothing comes from another host, fonts included
    assert (tmp_path / "site" / "changelog.html").is_file()


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    plain = yaml.safe_load(re.sub(r"!!python/name:\S+", "x", text))
    listed = {page for part in plain["nav"] for page in _pages(part)}
    assert listed == {page.name for page in (ROOT / "docs").glob("*.md")}


def _pages(part: object) -> list[str]:
    if isinstance(part, dict):
        return [page for value in part.values() for page in _pages(value)]
    return [page for item in part for page in _pages(item)] if isinstance(part, list) else [str(part)]
