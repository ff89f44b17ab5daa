"""`--suite paper` end to end on made-up VOC, COCO and VG trees: every method and variant, on each.

The cells run one after another in this process, with the threshold's fit cut short and nothing timed beforehand:
some 250 runs have to fit into two minutes. That cells run in processes of their own, and resume, is tested in
test_sweep.py.
"""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from fewtags.benchmark import jobs, sweep
from fewtags.benchmark.cells import cells
from fewtags.benchmark.pool import Ended
from fewtags.benchmark.results import read_results
from fewtags.benchmark.suites import chosen
from fewtags.labels.formats.voc import CATEGORIES
from fewtags.methods import METHODS
from fewtags.methods.variants import VARIANTS
from fewtags.recipe import Recipe
from fewtags.training import run
from fewtags.training.timing import Expected
from fewtags.transfer import threshold_fit
from tests.conftest import TINY
from tests.labels.formats.make import picture, text
from tests.labels.formats.test_coco import instances
from tests.labels.formats.test_voc import objects

TRAIN, TEST = 6, 3
SMALL = TINY | {
    "epochs": 2,
    "batch_size": TRAIN,
    "views": ("plain",),
    "holdout": 0.0,
    "feature_size": 8,
    "joint_size": 4,
    "classifier_size": 8,
    "pair_size": 4,
    "pair_hidden": 4,
    "graph_smoothing": 20.0,
}


def labels(categories: int, seed: int) -> np.ndarray:
    """(images, categories) bool; each category is present in some training and some test image."""
    present = np.random.default_rng(seed).random((TRAIN + TEST, categories)) < 0.4
    places = np.arange(categories)
    present[places % TRAIN, places] = True
    present[TRAIN + places % TEST, places] = True
    return present


def voc(root: Path) -> str:
    present = labels(len(CATEGORIES), seed=0)
    for image, row in enumerate(present):
        found = [(name, 0) for name, is_present in zip(CATEGORIES, row, strict=True) if is_present]
        absent = [(name, 1) for name, is_present in zip(CATEGORIES, row, strict=True) if not is_present]
        text(root / "Annotations" / f"{image:06d}.xml", objects(*found, *absent[:1]))  # one difficult object
        picture(root / "JPEGImages" / f"{image:06d}.jpg", 32)
    names = [f"{image:06d}" for image in range(TRAIN + TEST)]
    text(root / "ImageSets/Main/trainval.txt", "\n".join(names[:TRAIN]) + "\n")
    text(root / "ImageSets/Main/test.txt", "\n".join(names[TRAIN:]) + "\n")
    return f"voc2007:{root}"


def coco(root: Path) -> str:
    categories = [{"id": 3 * number + 1, "name": f"thing {number}"} for number in range(80)]
    present = labels(len(categories), seed=1)
    for part, rows in (("train2014", range(TRAIN)), ("val2014", range(TRAIN, TRAIN + TEST))):
        pairs = [(row, 3 * int(number) + 1) for row in rows for number in np.flatnonzero(present[row])]
        content = instances(part, list(rows), pairs, categories)
        text(root / "annotations" / f"instances_{part}.json", json.dumps(content))
        for image in content["images"]:
            picture(root / part / image["file_name"], 32)
    return f"coco2014:{root}"


def visual_genome(root: Path) -> str:
    present = labels(200, seed=2)
    index = {f"{row}.jpg": np.flatnonzero(present[row]).tolist() for row in range(TRAIN + TEST)}
    text(root / "vg_category_200_labels_index.json", json.dumps(index))
    text(root / "train_list_500.txt", "\n".join(f"{row}.jpg" for row in range(TRAIN)))
    text(root / "test_list_500.txt", "\n".join(f"{row}.jpg" for row in range(TRAIN, TRAIN + TEST)))
    for name in index:
        picture(root / "VG_100K" / name, 32)
    return f"vg200:{root}"


class OneAfterAnother:
    """A pool that runs its jobs at once, in this process."""

    def __init__(self, threads: int):
        self.ended: deque[Ended] = deque()

    def __enter__(self) -> OneAfterAnother:
        return self

    def __exit__(self, *_: object) -> None: ...

    def start(self, kind: str, log: Path | None = None, **settings) -> int:
        getattr(jobs, kind)(**settings)
        self.ended.append(Ended(len(self.ended), 0))
        return len(self.ended) - 1

    def call(self, kind: str, **settings):
        return getattr(jobs, kind)(**settings)

    def wait(self, timeout: float | None = None) -> list[Ended]:
        return [self.ended.popleft()] if self.ended else []


def test_the_whole_paper_on_small_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweep, "Pool", OneAfterAnother)
    monkeypatch.setattr(threshold_fit, "FIT_STEPS", 3)
    monkeypatch.setattr(run, "TensorBoardLogger", lambda *_, **__: False)
    monkeypatch.setattr(run, "expect", lambda *_: Expected(1.0, 1.0))
    data = [voc(tmp_path / "VOC2007"), coco(tmp_path / "coco"), visual_genome(tmp_path / "vg")]
    blocks, recipe_name = chosen("paper", None, "0.5", "0")
    recipe = Recipe.load(recipe_name).replace(**SMALL)

    outcome = sweep.benchmark(data, blocks, recipe, tmp_path / "out")

    assert outcome.failures == []
    rows = read_results(tmp_path / "out")
    assert len(rows) == len(cells(data, blocks)) == 3 * (len(METHODS) + len(VARIANTS))
    for name, categories in (("voc2007", 20), ("coco2014", 80), ("vg200", 200)):
        own = rows[rows["data"] == name]
        assert set(own["method"]) == {*METHODS, *VARIANTS}
        assert own["mAP"].between(100 / categories / 10, 100).all()
        assert (own["images"] == TRAIN).all()
    assert set(rows.loc[rows["method"] != "full_labels", "known"]) == {0.5}
    assert outcome.report is not None
    page = outcome.report.read_text()
    assert all(name in page for name in METHODS)
