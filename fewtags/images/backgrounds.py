"""Backgrounds of the embedded set: two surfaces that meet, or one seen from above, with texture."""

from __future__ import annotations

import numpy as np
from PIL import Image

Colour = tuple[int, int, int]

# Several choices each, and overlapping ones, so that a background hints at the scene without giving it away.
UPPER: dict[str, tuple[Colour, ...]] = {
    "outdoors": ((150, 200, 235), (190, 215, 230), (235, 205, 170), (170, 180, 190)),
    "road": ((165, 190, 215), (185, 185, 190), (140, 150, 165), (225, 205, 185)),
    "water": ((150, 205, 240), (200, 220, 230), (240, 205, 165), (170, 185, 195)),
    "room": ((225, 215, 195), (190, 205, 200), (205, 190, 205), (215, 200, 170), (170, 180, 190)),
    "table": ((200, 190, 175), (180, 185, 190), (215, 205, 190), (160, 150, 145)),
}
LOWER: dict[str, tuple[Colour, ...]] = {
    "outdoors": ((120, 165, 85), (150, 165, 90), (170, 155, 105), (95, 140, 90)),
    "road": ((125, 125, 130), (145, 140, 135), (105, 110, 115), (140, 155, 110)),
    "water": ((90, 155, 195), (225, 205, 155), (110, 170, 180), (210, 190, 150)),
    "room": ((165, 125, 85), (190, 165, 135), (130, 110, 100), (150, 155, 160)),
    "table": ((185, 145, 100), (150, 110, 75), (215, 210, 205), (130, 135, 140), (200, 180, 150)),
}
PATTERNS = ("plain", "stripes", "planks", "tiles", "waves")


def background(kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """An empty scene of this kind: (3, size, size) float32 RGB from 0 to 255."""
    horizon = _horizon(kind, rng)
    rows = (np.arange(size, dtype=np.float32) + 0.5)[:, None] / size
    columns = rows.T
    edge = horizon + 0.04 * rng.uniform(-1, 1) * columns
    below = np.clip((rows - edge) * size / 3, 0, 1)
    shade = 1 + (0.35 + 0.65 * below) * (_texture(rows, columns, rng) + _cloudiness(size, rng))
    upper, lower = (_jittered(side[kind], rng) for side in (UPPER, LOWER))
    surface = (lower - upper)[:, None, None] * below
    surface += upper[:, None, None]
    surface *= shade
    return surface.clip(0, 255, out=surface)


def _horizon(kind: str, rng: np.random.Generator) -> float:
    """Where the surfaces meet, from the top; tables are mostly seen from above."""
    if kind == "table":
        return -0.2 if rng.random() < 0.65 else rng.uniform(0.1, 0.35)
    return rng.uniform(0.25, 0.6)


def _jittered(colours: tuple[Colour, ...], rng: np.random.Generator) -> np.ndarray:
    chosen = np.array(colours[rng.integers(len(colours))], dtype=np.float32)
    return chosen * rng.uniform(0.8, 1.15) + rng.uniform(-14, 14, 3).astype(np.float32)


def _texture(rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(size, size) relative brightness of a regular pattern, about 0."""
    pattern = PATTERNS[rng.integers(len(PATTERNS))]
    strength, count, slant = rng.uniform(0.03, 0.12), rng.uniform(4, 14), rng.uniform(-0.5, 0.5)
    along = count * (rows + slant * columns)
    if pattern == "stripes":
        return strength * np.sign(np.sin(2 * np.pi * along))
    if pattern == "planks":
        return strength * np.where(along % 1 < 0.12, np.float32(-2), np.sin(12.9 * np.floor(along)))
    if pattern == "tiles":
        lines = (along % 1 < 0.1) | (count * (columns - slant * rows) % 1 < 0.1)
        return -2 * strength * lines.astype(np.float32)
    if pattern == "waves":
        return strength * np.sin(2 * np.pi * (along + 0.3 * np.sin(6 * columns)))
    return np.zeros_like(along)


def _cloudiness(size: int, rng: np.random.Generator) -> np.ndarray:
    """(size, size) smooth blotches: coarse and finer noise, enlarged."""
    total = np.zeros((size, size), dtype=np.float32)
    for cells, strength in ((5, 0.13), (32, 0.08)):
        noise = rng.standard_normal((cells, cells), dtype=np.float32)
        enlarged = Image.fromarray(noise).resize((size, size), Image.Resampling.BILINEAR)
        total += strength * np.asarray(enlarged)
    return total
