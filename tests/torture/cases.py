"""The commands that are killed: how each is started, how it goes on, and what has to come out in the end."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fewtags.benchmark.results import COST
from fewtags.recipe import Recipe
from tests.conftest import TINY, write_colours
from tests.nursery import Job, Nursery
from tests.torture.files_left import files

TIMES = ["seconds", "training_seconds", "peak_memory_gib"]
"""Figures that no two runs share."""
BATCH = 16
"""Images whose features are computed at a time."""


@dataclass
class Workshop:
    """A small data set, a small recipe, and a run trained without disturbance."""

    folder: Path
    nursery: Nursery
    data: Path = field(init=False)
    recipe: Path = field(init=False)
    cache: Path = field(init=False)
    run: Path = field(init=False)

    def __post_init__(self) -> None:
        self.data = write_colours(self.folder / "data" / "colours")
        self.recipe, self.cache = self.folder / "tiny.yaml", self.folder / "cache"
        settings = Recipe(**TINY, known=0.5).model_dump(mode="json", exclude_defaults=True)
        self.recipe.write_text(yaml.safe_dump(settings))
        self.run = self.folder / "run"
        job = self.start(["train", self.data, "--recipe", self.recipe, "--out", self.run], self.folder)
        assert job.finish() == 0, job.said()

    def start(
        self,
        arguments: list[Any],
        place: Path,
        cache: Path | None = None,
        die: tuple[int, str] | None = None,
        **how: Any,
    ) -> Job:
        environment = {"FEWTAGS_CACHE": str(cache or self.cache), "COLUMNS": "200"}
        return self.nursery.start(arguments, place / "log.txt", environment, die=die, **how)


class Case:
    """One command in a folder of its own, `place`."""

    name = ""
    ends_with = 0
    at_writes = 0.5
    """Share of the kills that strike while a file is written, the others at any moment."""

    def __init__(self, workshop: Workshop):
        self.workshop = workshop

    def arguments(self, place: Path) -> list[Any]:
        """The command line for what is in the folder now: the first start, or going on."""
        raise NotImplementedError

    def results(self, place: Path) -> dict[str, Any]:
        """What has to be equal to an undisturbed run's."""
        raise NotImplementedError

    def start(self, place: Path, die: tuple[int, str] | None = None) -> Job:
        return self.workshop.start(self.arguments(place), place, self.cache(place), die)

    def cache(self, place: Path) -> Path:
        return self.workshop.cache

    def window(self, place: Path, job: Job) -> tuple[float, float] | None:
        """When there is something to kill, in seconds after the start; None: from the start to the end."""
        return None

    def kill(self, job: Job, moment: float, kept: set[int]) -> None:
        """Kill it so many seconds after its start, if it has not ended before."""
        if job.wait(moment) is None:
            job.kill()

    def end(self, job: Job, kept: set[int]) -> int:
        """Let it end in order; its exit code. `kept`: what a server has acknowledged, here and before."""
        return job.finish()

    def check(self, place: Path, kept: set[int]) -> None:
        """After a kill."""

    def progress(self, place: Path) -> int:
        """How far it has come, in steps that may not be lost."""
        return 0

    def done_again(self, job: Job, far: int) -> str | None:
        """What the last command did although it had been done before; `far` as `progress` gave it."""
        return None


class Train(Case):
    name = "train"

    def arguments(self, place: Path) -> list[Any]:
        run, shop = place / "run", self.workshop
        resume = ["--resume"] if (run / "recipe.yaml").is_file() else []
        return ["train", shop.data, "--recipe", shop.recipe, *self.flags(), "--out", run, *resume]

    def flags(self) -> list[Any]:
        return []

    def results(self, place: Path) -> dict[str, Any]:
        run = place / "run"
        history = pd.read_csv(run / "history.csv").drop(columns="seconds")
        metrics = json.loads((run / "metrics.json").read_text())
        whole = ("model.safetensors", "labels.json", "recipe.yaml", "completion/heldout.parquet")
        return {
            **{name: digest(run / name) for name in whole},
            "history": history.to_csv(),
            "metrics": {name: value for name, value in metrics.items() if name not in TIMES},
        }

    def progress(self, place: Path) -> int:
        """Epochs in the newest checkpoint."""
        found = sorted((place / "run" / "checkpoints").glob("epoch-*.safetensors"))
        return int(found[-1].stem.split("-")[1]) if found else 0

    def done_again(self, job: Job, far: int) -> str | None:
        """The newest epoch of before is told once more, at the start of the next."""
        again = [epoch for epoch in range(1, far) if f"epoch {epoch}/" in job.said()]
        return f"epochs {again}" if again else None


class Caching(Train):
    """The part of training that computes features: a cache of its own, and one short epoch behind it."""

    name = "train, caching features"
    at_writes = 0.25

    def cache(self, place: Path) -> Path:
        return place / "cache"

    def flags(self) -> list[Any]:
        return ["--method", "plain", "--epochs", "1", "--set", "image_size=96"]

    def results(self, place: Path) -> dict[str, Any]:
        features = {path.name: digest(path) for path in sorted(self.cache(place).glob("*.npy"))}
        assert len(features) == 2  # of the training and of the test images
        return {"features": features, "model": digest(place / "run" / "model.safetensors")}

    def window(self, place: Path, job: Job) -> tuple[float, float] | None:
        """From the first row of features to the last file of them."""
        began = when(lambda: self.progress(place) > 0, job)
        return began, when(lambda: len(list(self.cache(place).glob("*.npy"))) == 2, job)

    def progress(self, place: Path) -> int:
        """Images whose features are there, in whole batches: a batch that was cut off is done again."""
        found = [*self.cache(place).glob("*.npy"), *self.cache(place).glob("*.partial")]
        return sum(map(rows_in, found))

    def done_again(self, job: Job, far: int) -> str | None:
        return None


class Complete(Case):
    name = "complete"

    def arguments(self, place: Path) -> list[Any]:
        return ["complete", self.workshop.run, self.workshop.data, "--out", place / "out", "--csv", *self.flags()]

    def flags(self) -> list[Any]:
        return ["--precision", "0.6", "--audit", "5"]

    def results(self, place: Path) -> dict[str, Any]:
        report = (place / "out" / "completion.json").read_text().replace(str(place), "PLACE")
        tables = [path for path in files(place / "out") if path.suffix in (".csv", ".parquet")]
        return {"report": report, **{path.name: digest(path) for path in tables}}


class Benchmark(Case):
    name = "benchmark"
    methods = "plain,hst.intra_only"

    def arguments(self, place: Path) -> list[Any]:
        grid = ["--methods", self.methods, "--known", "0.5", "--seeds", "0"]
        return ["benchmark", self.workshop.data, *grid, "--recipe", self.workshop.recipe, "--out", place / "out"]

    def results(self, place: Path) -> dict[str, Any]:
        rows = pd.read_csv(place / "out" / "results.csv").drop(columns=list(COST))
        runs = sorted(path.name for path in (place / "out" / "runs").rglob("*") if path.name != "log.txt")
        return {"rows": rows.to_csv(), "files": runs}

    def progress(self, place: Path) -> int:
        """Rows."""
        file = place / "out" / "results.csv"
        return len(pd.read_csv(file)) if file.is_file() else 0

    def done_again(self, job: Job, far: int) -> str | None:
        found = re.search(r", (\d+) of them done before", job.said())
        return None if found and int(found[1]) >= far else f"a cell of {far}"


def rows_in(features: Path) -> int:
    with features.open("rb") as file:
        try:
            np.lib.format.read_magic(file)
            shape, _, kind = np.lib.format.read_array_header_1_0(file)
        except ValueError:  # not even its head is written
            return 0
        rows = (features.stat().st_size - file.tell()) // (kind.itemsize * int(np.prod(shape[1:])))
    return rows if rows == shape[0] else rows - rows % BATCH


def when(happened: Callable[[], bool], job: Job) -> float:
    """Seconds from its start until then."""
    while not happened():
        assert job.wait(0) is None, job.said()
    return time.perf_counter() - job.started


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
