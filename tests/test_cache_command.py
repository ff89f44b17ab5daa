"""`fewtags cache`: what is there, and deleting what is no longer used, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from filelock import FileLock
from rich.console import Console
from typer.testing import CliRunner

import fewtags
from fewtags.cli import app
from fewtags.images.cache_files import ABANDONED, entries, old, remove
from tests.conftest import TINY, write_colours

DAY = 86400


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_colours(tmp_path_factory.mktemp("cached") / "data", train=12, test=4)


@pytest.fixture
def cache(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The features of one training, an index of suggestions, and a file that is not ours."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FEWTAGS_CACHE", str(folder))
    monkeypatch.setattr("fewtags.cli.cache.console", Console(width=200))
    fewtags.train(data, out=tmp_path / "run", method="plain", **(TINY | {"epochs": 1}))
    (folder / "review" / "abc").mkdir(parents=True)
    (folder / "review" / "abc" / "facts.json").write_text("{}")
    (folder / "thesis.json").write_text('{"chapters": 3}')
    (folder / "thesis.npy").write_bytes(b"precious")
    return folder


def run(*arguments: str) -> str:
    answer = CliRunner().invoke(app, ["cache", *arguments], catch_exceptions=False)
    assert answer.exit_code == 0
    return answer.output


def age(folder: Path, days: float) -> None:
    then = time.time() - days * DAY
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (then, then))


def test_what_is_cached_is_listed_with_size_and_last_use(cache: Path):
    age(cache, 40)
    said = run()
    assert said == run("list")
    assert "features of 12 images, 2 views" in said
    assert "features of 4 images" in said
    assert "review/abc" in said
    assert said.count("40 days ago") == 3
    assert "thesis" not in said
    sizes = [sum(path.stat().st_size for path in entry.paths if path.is_file()) for entry in entries(cache)]
    assert max(sizes) > 1000


def test_nothing_is_deleted_without_yes(cache: Path):
    before = sorted(cache.rglob("*"))
    assert "Nothing was deleted" in run("clean", "--all")
    assert sorted(cache.rglob("*")) == before


def test_everything_goes_but_what_is_not_ours(cache: Path):
    assert "Deleted: 3 of 3" in run("clean", "--all", "--yes")
    assert entries(cache) == []
    left = {path.name for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"}
    assert {"thesis.json", "thesis.npy"} <= left
    assert not any(name.endswith((".npy", ".partial")) for name in left - {"thesis.npy"})
    assert "nothing is cached" in run()
    assert "nothing to delete" in run("clean", "--all", "--yes")


def test_only_what_was_not_used_for_long_goes(cache: Path, data: Path, tmp_path: Path):
    age(cache, 40)
    assert "nothing to delete" in run("clean", "--older-than", "41d", "--yes")
    fewtags.train(data, out=tmp_path / "again", method="plain", **(TINY | {"epochs": 1}))  # reads the features
    assert "Deleted: 1 of 1" in run("clean", "--older-than", "30d", "--yes")  # the index
    assert len(entries(cache)) == 2


def test_what_is_being_written_stays(cache: Path):
    first = next(entry for entry in entries(cache) if entry.locks)
    with FileLock(first.locks[0]):
        assert remove(first) is False
        assert f"{first.name} stays" in run("clean", "--all", "--yes").replace("\n", "")
    assert [entry.name for entry in entries(cache)] == [first.name]
    assert all(path.exists() for path in first.paths)


def test_an_index_that_is_being_built_is_not_listed(tmp_path: Path):
    draft = tmp_path / "review" / ".draft"
    draft.mkdir(parents=True)
    assert entries(tmp_path) == []
    then = time.time() - ABANDONED - 1
    os.utime(draft, (then, then))
    assert [entry.name for entry in entries(tmp_path)] == ["review/.draft"]


def test_old_is_counted_from_the_last_use(cache: Path):
    now = time.time()
    assert old(entries(cache), DAY, now) == []
    assert len(old(entries(cache), DAY, now + 2 * DAY)) == 3


@pytest.mark.parametrize("arguments", [["clean"], ["clean", "--all", "--older-than", "3d"]])
def test_what_to_delete_must_be_said(arguments: list[str]):
    with pytest.raises(fewtags.UserError, match="say what to delete"):
        CliRunner().invoke(app, ["cache", *arguments], catch_exceptions=False)


def test_no_cache_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FEWTAGS_CACHE", str(tmp_path / "none"))
    assert "nothing is cached" in run()
    assert not (tmp_path / "none").exists()
