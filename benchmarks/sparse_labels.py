"""A sparse label table of a million images and 600 categories: memory and time, from Parquet shards to batches.

    python -m benchmarks.sparse_labels                                      # 1,000,000 × 600, 10 % known
    python -m benchmarks.sparse_labels --images 9000000 --known 0.0117      # as many known labels as Open Images
    python -m benchmarks.sparse_labels --images 100000 --most-gib 1         # fails if it takes more

The shards are made in one process and read in another, whose largest resident memory is what counts. It does all
that training does with labels before and during an epoch: reads the shards, hides half of them, holds out a tenth,
draws folds, counts the label graph, and makes batches of 256. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

BATCH, BATCHES = 256, 200
PRESENT = 0.05
"""Of the known labels."""
AT_ONCE = 50_000


def main() -> None:
    arguments = parsed()
    size = arguments.images, arguments.categories, arguments.known
    if arguments.make is not None:
        return make_shards(arguments.make, *size)
    if arguments.measure is not None:
        return print(json.dumps(measured(arguments.measure)))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        shards = Path(folder) / "shards"
        flags = zip(("--images", "--categories", "--known"), map(str, size), strict=True)
        command = [sys.executable, "-m", "benchmarks.sparse_labels", "--make", str(shards)]
        subprocess.run([*command, *(word for flag in flags for word in flag)], check=True)
        found = in_a_process(shards)
    for name, value in found.items():
        print(f"{name:32} {value:,.2f}" if isinstance(value, float) else f"{name:32} {value:,}")
    if arguments.most_gib is not None and found["largest memory, GiB"] > arguments.most_gib:
        sys.exit(f"more than {arguments.most_gib} GiB")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--categories", type=int, default=600)
    parser.add_argument("--known", type=float, default=0.1)
    parser.add_argument("--most-gib", type=float)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def in_a_process(shards: Path) -> dict[str, Any]:
    """What a fresh process measures on these shards."""
    command = [sys.executable, "-m", "benchmarks.sparse_labels", "--measure", str(shards)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(answer.stdout)


def make_shards(folder: Path, images: int, categories: int, known: float, seed: int = 0) -> None:
    """Random labels: each entry is known with probability `known`, and then present in one of twenty."""
    from fewtags.labels.formats.sparse import write_shards
    from fewtags.labels.sparse import SparseTable, labels_from_entries

    rng, parts = np.random.default_rng(seed), []
    for first in range(0, images, AT_ONCE):
        rows = min(AT_ONCE, images - first)
        place = np.flatnonzero(rng.random((rows, categories), dtype=np.float32) < known)
        value = np.where(rng.random(len(place)) < PRESENT, 1, -1).astype(np.int8)
        row = (place // categories + first).astype(np.int32)
        parts.append((row, (place % categories).astype(np.uint16), value))
    row, category, value = (np.concatenate(column) for column in zip(*parts, strict=True))
    labels: Any = labels_from_entries(row, category, value, (images, categories))
    names = tuple(f"train/{number:016x}.jpg" for number in range(images))
    splits = tuple("test" if number % 50 == 49 else "train" for number in range(images))
    table = SparseTable(names, tuple(f"category {c}" for c in range(categories)), labels, splits)
    write_shards(table, folder, folder)


def measured(folder: Path) -> dict[str, Any]:
    from fewtags.labels.formats.sparse import read_sparse
    from fewtags.nn.label_graph import count_pairs
    from fewtags.recipe import Recipe
    from fewtags.training.data import Collate
    from fewtags.training.prepare_sparse import known_of_sparse

    found: dict[str, Any] = {"memory before, GiB": memory()}
    with timed(found, "reading the shards, s"):
        table, _ = read_sparse(folder)
    found |= {"images": len(table), "known labels": len(table.labels.category)}
    found["shards on disk, MB"] = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
    with timed(found, "split, hide, hold out, folds, s"):
        train, known = known_of_sparse(table.split("train"), Recipe(known=0.5))  # type: ignore[arg-type]
    with timed(found, "counting the label graph, s"):
        graph = count_pairs(train.labels)
    found["pairs known present"] = int(graph.together.sum())
    collate, rng = Collate(known, 0), np.random.default_rng(0)
    with timed(found, "a batch of 256, ms", BATCHES / 1000):
        for _ in range(BATCHES):
            rows = rng.integers(0, len(train), BATCH)
            collate(([(int(row), 0) for row in rows], None))
    return found | {"largest memory, GiB": memory()}


@contextmanager
def timed(found: dict[str, Any], name: str, divide: float = 1.0) -> Iterator[None]:
    started = time.process_time()
    yield
    found[name] = (time.process_time() - started) / divide


def memory() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


if __name__ == "__main__":
    main()
