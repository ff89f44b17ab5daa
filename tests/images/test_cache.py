"""The feature cache: computed once, keyed by all that matters, whole or not at all, and it survives a kill."""

import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from fewtags.errors import UserError
from fewtags.images import cache
from fewtags.images.cache import Views, cache_folder, cached_features, features, finished_rows, header
from fewtags.images.loading import FolderImages
from fewtags.images.scenes import SceneImages, scenes
from fewtags.images.transforms import cached_view
from fewtags.nn.backbones import build_backbone

SIZE, VIEWS = 64, ("plain", "flip", "crop1")
TABLE, SOURCE = scenes(train=10, test=0, size=64)


class Counting:
    """A source that counts how many images are opened, and fails at one of them if told to."""

    def __init__(self, fails_at: str | None = None):
        self.opened: list[str] = []
        self.fails_at = fails_at

    def open(self, image: str) -> Image.Image:
        if image == self.fails_at:
            raise UserError(f"{image}: damaged")
        self.opened.append(image)
        return SOURCE.open(image)

    def stamp(self, image: str) -> str:
        return SOURCE.stamp(image)


@pytest.fixture(scope="module")
def backbone():
    torch.manual_seed(0)
    return build_backbone("test_resnet", pretrained=False)


def cached(folder: Path, backbone, source=SOURCE, images=TABLE.images, **settings):
    settings = {"size": SIZE, "views": VIEWS, "seed": 0, "progress": False, "batch_size": 4} | settings
    return cached_features(images, source, backbone, folder=folder, **settings)


def test_features_are_the_backbones(tmp_path, backbone):
    backbone.train()
    maps = cached(tmp_path, backbone)
    assert (maps.shape, maps.dtype) == ((10, 3, 96, 2, 2), np.float16)
    assert isinstance(maps, np.memmap)
    assert not maps.flags.writeable
    assert backbone.training  # left as it was
    reference = backbone.eval()
    for index, view in [(0, "plain"), (7, "crop1")]:
        seen = cached_view(view, index, 0, SIZE, backbone.mean, backbone.std)(SOURCE.open(TABLE.images[index]))
        with torch.no_grad():
            expected = reference(seen[None])[0].numpy()
        np.testing.assert_allclose(maps[index, VIEWS.index(view)], expected, atol=2e-3 * np.abs(expected).max())


def test_the_second_time_no_image_is_opened(tmp_path, backbone):
    source = Counting()
    first = cached(tmp_path, backbone, source)
    assert len(source.opened) == 10
    second = cached(tmp_path, backbone, source)
    assert len(source.opened) == 10
    assert (first == second).all()
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.suffix != ".lock") == [".json", ".npy"]


def test_the_key_file_says_what_is_inside(tmp_path, backbone):
    cached(tmp_path, backbone)
    told = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert (told["backbone"], told["images"], told["size"], told["views"]) == (
        "test_resnet",
        10,
        SIZE,
        list(VIEWS),
    )


def test_the_key_changes_with_all_that_decides_the_features(tmp_path, backbone):
    torch.manual_seed(1)
    other = build_backbone("test_resnet", pretrained=False)

    def name(
        images=TABLE.images, source=SOURCE, network=backbone, views=VIEWS, size=64, seed=0, resize=512, sides=(9,)
    ):
        wanted = Views(images, source, views, size, seed, network.mean, network.std, resize, sides)
        return cache.name_of(cache.describe(wanted, network))

    names = [
        name(),
        name(images=TABLE.images[::-1]),
        name(source=SceneImages(1, 64, 1.0)),
        name(network=other),
        name(views=VIEWS[:2]),
        name(size=96),
        name(seed=1),
        name(resize=448),
        name(sides=(9, 8)),
    ]
    assert len(set(names)) == len(names)
    assert name() == names[0]


def test_a_changed_image_is_computed_anew(tmp_path, backbone):
    for index in range(3):
        SOURCE.open(TABLE.images[index]).save(tmp_path / f"{index}.png")
    source = FolderImages(tmp_path)
    first = cached(tmp_path / "cache", backbone, source, ["0.png", "1.png"]).copy()
    shutil.copyfile(tmp_path / "2.png", tmp_path / "1.png")
    second = cached(tmp_path / "cache", backbone, source, ["0.png", "1.png"])
    assert (first[0] == second[0]).all()
    assert (first[1] != second[1]).any()


def test_an_interrupted_run_goes_on_and_ends_the_same(tmp_path, backbone):
    whole = cached(tmp_path / "whole", backbone)
    with pytest.raises(UserError, match="damaged"):
        cached(tmp_path / "cut", backbone, Counting(fails_at=TABLE.images[9]))
    assert not list((tmp_path / "cut").glob("*.npy"))
    source = Counting()
    resumed = cached(tmp_path / "cut", backbone, source)
    assert source.opened == list(TABLE.images[8:])  # two batches of four were finished
    assert (resumed == whole).all()
    assert not list((tmp_path / "cut").glob("*.partial"))


def test_a_half_written_row_is_done_again(tmp_path):
    shape, partial = (10, 2, 3, 1, 1), tmp_path / "x.partial"
    row = 2 * 2 * 3
    for size, rows in [(0, 0), (4 * row, 4), (9 * row + 5, 8), (3 * row, 0), (10 * row, 8), (4 * row - 1, 0)]:
        partial.write_bytes(header(shape) + bytes(size))
        assert finished_rows(partial, shape, batch_size=4) == rows
    partial.write_bytes(header((9, 2, 3, 1, 1)) + bytes(200))
    assert finished_rows(partial, shape, 4) == 0
    assert finished_rows(tmp_path / "none", shape, 4) == 0


def test_a_damaged_file_is_computed_again(tmp_path, backbone):
    good = cached(tmp_path, backbone).copy()
    path = next(tmp_path.glob("*.npy"))
    path.write_bytes(path.read_bytes()[:500])
    assert (cached(tmp_path, backbone) == good).all()


def test_no_images_and_large_values(tmp_path, backbone):
    assert cached(tmp_path, backbone, images=[]).shape == (0, 3, 96, 2, 2)
    huge = features(torch.nn.Identity(), torch.tensor([1e9, -1e9, 3.0]).reshape(1, 1, 3, 1, 1))
    assert huge.ravel().tolist() == [65504, -65504, 3]


def test_progress_is_shown(tmp_path, backbone):
    out = io.StringIO()
    cached(tmp_path, backbone, progress=True, console=Console(file=out, force_terminal=True, width=100))
    assert "test_resnet features, 3 views" in out.getvalue()


def test_a_second_process_waits_and_says_so(tmp_path, backbone, monkeypatch):
    """Another process holds the lock for a moment."""
    monkeypatch.setattr(cache, "PATIENCE", 0.05)
    cached(tmp_path, backbone)
    next(tmp_path.glob("*.npy")).unlink()
    lock = tmp_path / f"{next(tmp_path.glob('*.json')).stem}.lock"
    hold = "import sys, time; from filelock import FileLock\n"
    hold += "with FileLock(sys.argv[1]): print(1, flush=True); time.sleep(1)"
    with subprocess.Popen([sys.executable, "-c", hold, str(lock)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        out, start = io.StringIO(), time.perf_counter()
        cached(tmp_path, backbone, console=Console(file=out, width=300))
    assert time.perf_counter() - start > 0.5
    assert "another process is computing the same features" in out.getvalue()


def test_too_little_space_is_said_before_starting(tmp_path, backbone, monkeypatch):
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 10))
    with pytest.raises(UserError, match=r"need 0\.0 GB, and .* has 0\.0 GB left; set FEWTAGS_CACHE"):
        cached(tmp_path, backbone)


def test_a_folder_that_cannot_be_made(tmp_path, backbone):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"the cache cannot be kept here .* set FEWTAGS_CACHE"):
        cached(tmp_path / "file" / "cache", backbone)


def test_cache_folder(monkeypatch):
    monkeypatch.setenv("FEWTAGS_CACHE", "somewhere")
    assert cache_folder() == Path("somewhere")
    monkeypatch.delenv("FEWTAGS_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "fewtags"
