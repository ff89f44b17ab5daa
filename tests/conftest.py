"""A tiny folder data set whose categories are colours, and settings that train on it in a second."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 60, 220), "yellow": (230, 210, 40)}

TINY = {
    "backbone": "test_resnet",
    "pretrained": False,
    "image_size": 32,
    "views": ("plain", "flip"),
    "feature_size": 16,
    "joint_size": 8,
    "word_size": 6,
    "classifier_size": 16,
    "pair_size": 8,
    "pair_hidden": 16,
    "prototypes": 2,
    "contrast_queue": 64,
    "epochs": 3,
    "batch_size": 16,
    "threads": 1,
    "device": "cpu",
}
"""A network that trains in a moment; its backbone is random, so scores mean little."""


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEWTAGS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


LONGEST = (
    "test_paper_suite.py",
    "test_sweep.py",
    "test_processes.py",
    "test_torture.py",
    "test_cli.py",
    "test_launch.py",
    "test_reproduce.py",
    "test_docs.py",
    "test_readme.py",
    "test_pickles.py",
    "test_export.py",
    "test_demo.py",
    "test_typing.py",
)
"""Files of few tests that take long: started first, or one process works on the last of them while others rest."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: index for index, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


def write_colours(folder: Path, train: int = 48, test: int = 16, seed: int = 0, unknown: float = 0.0) -> Path:
    """Images of coloured squares on grey; a category is present when its colour is. Entries may be left blank."""
    rng = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True)
    lines = ["image,split," + ",".join(COLOURS)]
    for index in range(train + test):
        present = rng.random(len(COLOURS)) < 0.5
        _draw(present, rng).save(folder / "images" / f"{index:03d}.png")
        tokens = ["" if rng.random() < unknown else str(int(is_present)) for is_present in present]
        split = "train" if index < train else "test"
        lines.append(f"images/{index:03d}.png,{split}," + ",".join(tokens))
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def _draw(present: np.ndarray, rng: np.random.Generator) -> Image.Image:
    pixels = rng.integers(110, 140, (32, 32, 3)).astype(np.uint8)
    for place, (is_present, colour) in enumerate(zip(present, COLOURS.values(), strict=True)):
        if is_present:
            top, left = 16 * (place // 2) + rng.integers(0, 6), 16 * (place % 2) + rng.integers(0, 6)
            pixels[top : top + 10, left : left + 10] = colour
    return Image.fromarray(pixels)


@pytest.fixture(scope="session")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_colours(tmp_path_factory.mktemp("data") / "colours")


@pytest.fixture(scope="session")
def trained(colours: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small trained HST run."""
    import fewtags

    out = tmp_path_factory.mktemp("runs") / "hst"
    return fewtags.train(colours, out=out, method="hst", known=0.5, **TINY)


@pytest.fixture(scope="session")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run as an ONNX file."""
    from fewtags.export import export_onnx

    return export_onnx(trained, tmp_path_factory.mktemp("onnx") / "tagger.onnx").path


def obey_ctrl_c() -> None:
    """For a child process: Ctrl-C reaches it even where the tests run in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
