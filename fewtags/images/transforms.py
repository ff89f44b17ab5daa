"""From an opened image to what the network sees (SPEC 6).

Test: resize to a square. Training: resize larger, cut out a square of a random side, resize to the network's
square, perhaps mirror. Sizes are stated for a network that sees 448 pixels and scale with what it does see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from fewtags import torchvision_ops as _torchvision_ops  # noqa: F401  (before torchvision)

from torchvision.transforms import v2  # isort: skip
from torchvision.transforms.v2 import functional as F  # noqa: N812  # isort: skip

STATED_SIZE = 448
RESIZE = 512
CROP_SIDES = (512.0, 448.0, 384.0, 320.0, 256.0)
VIEWS = ("plain", "flip", "crop1", "crop2", "crop3", "crop4")

Transform = Callable[[Image.Image], Tensor]


def to_network(mean: Sequence[float], std: Sequence[float]) -> v2.Compose:
    """RGB image → (3, H, W) float32, normalised: (value / 255 - mean) / std."""
    return v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(list(mean), list(std))])


def evaluation_transform(size: int, mean: Sequence[float], std: Sequence[float]) -> Transform:
    """Resize to (size, size) and normalise."""
    return v2.Compose([v2.Resize((size, size), v2.InterpolationMode.BILINEAR), to_network(mean, std)])


def training_transform(
    size: int, resize: int, crop_sides: Sequence[float], mean: Sequence[float], std: Sequence[float]
) -> Transform:
    """A new random view each time, from torch's global random numbers."""
    return v2.Compose([RandomView(size, resize, crop_sides), to_network(mean, std)])


class RandomView(torch.nn.Module):
    """Resize, square crop of a random side at a random place, resize to the network's size, flip."""

    def __init__(
        self, size: int, resize: int, crop_sides: Sequence[float], generator: torch.Generator | None = None
    ):
        super().__init__()
        self.size = size
        self.resized = scaled(resize, size)
        self.sides = [min(scaled(side, size), self.resized) for side in crop_sides]
        self.generator = generator

    def forward(self, image: Image.Image) -> Image.Image:
        side = self.sides[self._below(len(self.sides))]
        top, left = self._below(self.resized - side + 1), self._below(self.resized - side + 1)
        image = F.resize(image, [self.resized, self.resized])
        image = F.resized_crop(image, top, left, side, side, [self.size, self.size])
        return F.horizontal_flip(image) if self._below(2) else image

    def _below(self, count: int) -> int:
        return int(torch.randint(count, (1,), generator=self.generator))


def scaled(length: float, size: int) -> int:
    """A length stated for 448 pixels, for a network that sees `size`."""
    return max(1, round(length * size / STATED_SIZE))


def cached_view(
    view: str,
    image_index: int,
    seed: int,
    size: int,
    mean: Sequence[float],
    std: Sequence[float],
    resize: int = RESIZE,
    crop_sides: Sequence[float] = CROP_SIDES,
) -> Transform:
    """The transform behind one view in the feature cache: the same for the same view, image and seed, always.

    `plain` is what evaluation sees, `flip` its mirror image, `crop1` to `crop4` are random training views.
    """
    if view not in VIEWS:
        raise ValueError(f"no view {view!r}: one of {', '.join(VIEWS)}")
    if not view.startswith("crop"):
        plain = evaluation_transform(size, mean, std)
        return plain if view == "plain" else v2.Compose([F.horizontal_flip, plain])
    mixed = np.random.SeedSequence([seed, image_index, VIEWS.index(view)]).generate_state(1, np.uint64)
    generator = torch.Generator().manual_seed(int(mixed[0] >> np.uint64(1)))
    return v2.Compose([RandomView(size, resize, crop_sides, generator), to_network(mean, std)])
