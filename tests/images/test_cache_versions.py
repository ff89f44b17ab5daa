"""Caches written by another version of fewtags: computed anew, and left as they are for that version."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fewtags.images import cache
from fewtags.images.loading import FolderImages
from fewtags.nn.backbones import Backbone, build_backbone
from fewtags.review import index
from tests.images.test_cache import SOURCE, TABLE, Counting, cached
from tests.review.fabricate import photo_suggestions
from tests.review.test_index import indexed


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    return build_backbone("test_resnet", pretrained=False)


def test_features_of_another_version_are_computed_anew(
    tmp_path: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
):
    ours = cached(tmp_path, backbone).copy()
    (file,) = tmp_path.glob("*.npy")
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    source = Counting()
    theirs = cached(tmp_path, backbone, source)
    assert len(source.opened) == len(TABLE.images)
    assert len(list(tmp_path.glob("*.npy"))) == 2
    assert (np.load(file) == ours).all()
    assert (theirs == ours).all()  # of this format; its name is another


def test_what_another_version_left_unfinished_is_not_continued(
    tmp_path: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
):
    whole = cached(tmp_path, backbone).copy()
    (file,) = tmp_path.glob("*.npy")
    unfinished = file.rename(file.with_suffix(".partial"))
    os.truncate(unfinished, unfinished.stat().st_size // 2)
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    source = Counting()
    assert (cached(tmp_path, backbone, source) == whole).all()
    assert source.opened == list(TABLE.images)
    assert unfinished.is_file()


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"another format altogether" * 100])
def test_a_file_of_that_name_in_another_format_is_replaced(content: bytes, tmp_path: Path, backbone: Backbone):
    good = cached(tmp_path, backbone).copy()
    (file,) = tmp_path.glob("*.npy")
    file.write_bytes(content)
    file.with_suffix(".partial").write_bytes(content)
    assert (cached(tmp_path, backbone) == good).all()


def test_an_image_replaced_by_an_older_file_is_noticed(tmp_path: Path, backbone: Backbone):
    """Its time is compared for equality, never for which is later: clocks differ."""
    for number in (0, 1):
        SOURCE.open(TABLE.images[number]).save(tmp_path / f"{number}.png")
    first = cached(tmp_path / "cache", backbone, FolderImages(tmp_path), ["0.png"]).copy()
    (tmp_path / "1.png").replace(tmp_path / "0.png")
    os.utime(tmp_path / "0.png", (1.0, 1.0))
    assert (cached(tmp_path / "cache", backbone, FolderImages(tmp_path), ["0.png"]) != first).any()


def test_an_index_of_another_version_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = indexed(tmp_path, photo_suggestions()).folder
    monkeypatch.setattr(index, "FORMAT", index.FORMAT + 1)
    second = indexed(tmp_path, photo_suggestions()).folder
    assert first != second
    assert first.is_dir()


def test_what_a_killed_process_left_of_an_index_is_removed(tmp_path: Path):
    left = tmp_path / "cache" / "review" / ".0123.draft"
    left.mkdir(parents=True)
    (left / "image.npy").write_bytes(b"half")
    indexed(tmp_path, photo_suggestions())
    assert not left.exists()
