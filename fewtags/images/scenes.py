"""`scenes`, the embedded image set: made-up scenes drawn on the fly, any number of them, complete labels.

An image is decided by (seed, split, index) alone: first its scene and its labels, then, from a stream of its
own, the picture. `correlation` moves the labels from independent draws (0) to draws by scene (1) without
changing how often any category occurs, nor the background and clutter, which always follow the scene.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from fewtags.errors import UserError
from fewtags.images.glyphs import FONT_VERSION
from fewtags.images.picture import Placed, draw_picture
from fewtags.images.themes import NAMES, SCENES, mixed_rates, scene_shares
from fewtags.labels.table import ABSENT, PRESENT, LabelTable

GENERATOR_VERSION = "1"
SPLITS = ("train", "test")
LABELS, PICTURE = 0, 1
MOST_IMAGES = 1_000_000


@dataclass(frozen=True)
class SceneImages:
    """Draws the images of one embedded set by name, e.g. `scenes/train/000123`."""

    seed: int
    size: int
    correlation: float

    def open(self, image: str) -> Image.Image:
        return self.draw(image)[0]

    def stamp(self, image: str) -> str:
        """What decides the picture besides its name; labels change with the correlation, so pictures do."""
        return (
            f"scenes {GENERATOR_VERSION}, OpenMoji {FONT_VERSION}, seed {self.seed}, size {self.size}, "
            f"correlation {self.correlation:g}"
        )

    def draw(self, image: str) -> tuple[Image.Image, list[Placed]]:
        """The image and what was placed on it, categories and clutter, back to front."""
        split, index = parsed_name(image)
        scene, present = scene_and_labels(self.seed, split, index, mixed_rates(self.correlation))
        names = [NAMES[category] for category in np.flatnonzero(present)]
        rng = stream(self.seed, split, index, PICTURE)
        return draw_picture(list(SCENES.values())[scene], names, self.size, rng)


def scenes(
    train: int = 2000, test: int = 1000, seed: int = 0, size: int = 160, correlation: float = 1.0
) -> tuple[LabelTable, SceneImages]:
    """The labels of `train` + `test` images, all known, and what draws them at `size` pixels a side."""
    _check(train, test, seed, size, correlation)
    rates = mixed_rates(correlation)
    counts = {"train": train, "test": test}
    where = [(split, index) for split in SPLITS for index in range(counts[split])]
    present = np.zeros((len(where), len(NAMES)), dtype=bool)
    for row, (split, index) in enumerate(where):
        present[row] = scene_and_labels(seed, split, index, rates)[1]
    table = LabelTable(
        images=tuple(f"scenes/{split}/{index:06d}" for split, index in where),
        categories=NAMES,
        values=np.where(present, PRESENT, ABSENT).astype(np.int8),
        splits=tuple(split for split, _ in where),
    )
    return table, SceneImages(seed, size, correlation)


def scene_and_labels(seed: int, split: str, index: int, rates: np.ndarray) -> tuple[int, np.ndarray]:
    """The scene and (categories,) presence: u_c < rates[scene, c], the same draw of u whatever the rates."""
    rng = stream(seed, split, index, LABELS)
    scene = int(np.searchsorted(np.cumsum(scene_shares()), rng.random(), side="right"))
    scene = min(scene, len(rates) - 1)
    return scene, rng.random(rates.shape[1]) < rates[scene]


def stream(seed: int, split: str, index: int, purpose: int) -> np.random.Generator:
    """A random stream of its own for each seed, split, image and purpose."""
    return np.random.default_rng([seed, SPLITS.index(split), index, purpose])


def parsed_name(image: str) -> tuple[str, int]:
    """`scenes/train/000123` → ("train", 123)."""
    folder, _, rest = image.partition("/")
    split, _, number = rest.partition("/")
    if folder != "scenes" or split not in SPLITS or not number.isdecimal():
        raise UserError(f"no image {image!r} in scenes: names look like scenes/train/000123 or scenes/test/000123")
    return split, int(number)


def _check(train: int, test: int, seed: int, size: int, correlation: float) -> None:
    for name, count in (("train", train), ("test", test)):
        if not 0 <= count <= MOST_IMAGES:
            raise UserError(f"scenes: {name}={count}; give a number of images from 0 to {MOST_IMAGES}")
    if train + test == 0:
        raise UserError("scenes: train=0 and test=0 leave no images")
    if seed < 0:
        raise UserError(f"scenes: seed={seed}; give 0 or more")
    if not 32 <= size <= 1024:
        raise UserError(f"scenes: size={size}; give a side from 32 to 1024 pixels")
    if not 0 <= correlation <= 1:
        raise UserError(f"scenes: correlation={correlation}; give a number from 0 (independent) to 1 (by scene)")
