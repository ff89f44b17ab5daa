"""What it costs to know image files by their content: `python -m benchmarks.fingerprint`.

Files are written just before, so they come from memory: what hashing and opening cost, not what a disk does.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import cast

import numpy as np

from fewtags.images.loading import FolderImages
from fewtags.reproduction.fingerprint import Reading, contents

FILES, BYTES = 2_000, 160_000  # as large as a photograph of MS-COCO
ROUNDS = 3


def seconds_an_image(names: list[str], source: FolderImages, reading: Reading) -> float:
    """The best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        contents(names, source, reading)
        best = min(best, time.perf_counter() - started)
    return best / len(names)


def main() -> None:
    noise = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{number}.jpg" for number in range(FILES)]
        for name in names:
            (Path(folder) / name).write_bytes(noise.bytes(BYTES))
        for reading in ("whole", "ends"):
            cost = seconds_an_image(names, FolderImages(folder), cast(Reading, reading))
            print(f"{reading}: {1e3 * cost:.3f} ms an image of {BYTES // 1000} kB")


if __name__ == "__main__":
    main()
