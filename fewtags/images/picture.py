"""One picture of the embedded set: background, clutter and objects, each left recognisable."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageFilter

from fewtags.images.backgrounds import UPPER, background
from fewtags.images.glyphs import SKIN_TONES, colour_matrix, sprite
from fewtags.images.themes import CATEGORIES, CLUTTER, Category, Scene

# Longer side of an object as a share of the image's: (smallest, largest), before the picture's own zoom.
SIDES = {"large": (0.26, 0.46), "medium": (0.16, 0.3), "small": (0.09, 0.17)}
LETTERED = set("🛑📗📘📙")
MOST_INSTANCES = 4
STAYS_VISIBLE = 0.5
INSIDE = 0.7
TRIES = 8
LAST_TRIES = 40
OTHER_BACKGROUND = 0.2
OTHER_CLUTTER = 0.35
KINDS, THEMES = tuple(UPPER), tuple(CLUTTER)


@dataclass(frozen=True)
class Placed:
    """Something drawn: a category's name, or None for clutter."""

    category: str | None
    glyph: str
    box: tuple[int, int, int, int]
    visible: float
    """Share of its ink that nothing covers and the border does not cut off."""


@dataclass
class Layout:
    """The canvas, and who owns each pixel of it, so that nothing is covered too far."""

    canvas: np.ndarray
    """(3, size, size) float32."""
    owner: np.ndarray
    """(size, size) int16: the number of what is on top, -1 for the background."""
    ink: list[int] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    what: list[tuple[str | None, str, tuple[int, int, int, int]]] = field(default_factory=list)

    def judge(self, mask: np.ndarray, left: int, top: int) -> float:
        """How the worst off would fare if this were put here: < 0 when anything is hidden or cut too far."""
        window, cut = self._overlap(mask.shape, left, top)
        inside = mask[cut]
        covered = self._covered(window, inside)
        worst = inside.sum() / mask.sum() - INSIDE
        for index in np.flatnonzero(covered):
            worst = min(worst, (self.shown[index] - covered[index]) / self.ink[index] - STAYS_VISIBLE)
        return float(worst)

    def put(self, category: str | None, glyph: str, image: np.ndarray, left: int, top: int) -> None:
        mask = ink_mask(image)
        window, cut = self._overlap(mask.shape, left, top)
        self.shown = (np.array(self.shown, dtype=int) - self._covered(window, mask[cut])).tolist()
        self.owner[window][mask[cut]] = len(self.ink)
        under, over = self.canvas[:, *window], image[:, *cut]
        under *= 1 - over[3]
        under += over[:3]
        self.ink.append(int(mask.sum()))
        self.shown.append(int(mask[cut].sum()))
        self.what.append((category, glyph, (left, top, left + mask.shape[1], top + mask.shape[0])))

    def _covered(self, window: tuple[slice, slice], mask: np.ndarray) -> np.ndarray:
        """(things placed,) pixels each would lose beneath the mask."""
        return np.bincount(self.owner[window][mask] + 1, minlength=len(self.ink) + 1)[1:]

    def _overlap(self, shape: tuple[int, ...], left: int, top: int) -> tuple[tuple[slice, slice], ...]:
        """Where a sprite put here meets the canvas: as slices of the canvas, and of the sprite."""
        spans = []
        for start, length in ((top, shape[0]), (left, shape[1])):
            first, last = (min(max(edge, 0), len(self.owner)) for edge in (start, start + length))
            spans.append((slice(first, last), slice(first - start, last - start)))
        rows, columns = spans
        return (rows[0], columns[0]), (rows[1], columns[1])

    def placed(self) -> list[Placed]:
        shares = [shown / ink for shown, ink in zip(self.shown, self.ink, strict=True)]
        return [Placed(*what, visible=share) for what, share in zip(self.what, shares, strict=True)]


def draw_picture(
    scene: Scene, names: list[str], size: int, rng: np.random.Generator
) -> tuple[Image.Image, list[Placed]]:
    """The scene with these categories in it, (size, size) RGB, and what was placed, back to front."""
    kind = KINDS[rng.integers(len(KINDS))] if rng.random() < OTHER_BACKGROUND else scene.background
    layout = Layout(background(kind, size, rng), np.full((size, size), -1, dtype=np.int16))
    zoom = size * rng.uniform(0.8, 1.15)
    for _ in range(rng.integers(2, 6)):
        _add_clutter(layout, scene, zoom, rng)
    for name in rng.permutation(names):
        _add_objects(layout, str(name), zoom, rng)
    for _ in range(rng.integers(1, 5)):
        _add_clutter(layout, scene, 0.8 * zoom, rng)
    return photographed(layout.canvas, rng), layout.placed()


def _add_objects(layout: Layout, name: str, zoom: float, rng: np.random.Generator) -> None:
    """One instance for sure, wherever it harms least, and more of them as far as there is room."""
    category = CATEGORIES[name]
    for instance in range(MOST_INSTANCES):
        if instance and rng.random() >= category.crowd:
            return
        glyph = category.glyphs[rng.integers(len(category.glyphs))]
        image = _object_sprite(category, glyph, zoom, rng)
        _place(layout, name, glyph, image, category.band, instance == 0, rng)


def _add_clutter(layout: Layout, scene: Scene, zoom: float, rng: np.random.Generator) -> None:
    theme = THEMES[rng.integers(len(THEMES))] if rng.random() < OTHER_CLUTTER else scene.theme
    glyph = CLUTTER[theme][rng.integers(len(CLUTTER[theme]))]
    side = zoom * rng.uniform(0.1, 0.32)
    colours = _colours(math.pi if rng.random() < 0.5 else 0.3, rng)
    image = sprite(glyph, side, rng.normal(0, 14), bool(rng.random() < 0.5), colours)
    _place(layout, None, glyph, image, (0.05, 0.95), False, rng)


def _object_sprite(category: Category, glyph: str, zoom: float, rng: np.random.Generator) -> np.ndarray:
    smallest, largest = SIDES[category.size]
    side = zoom * math.exp(rng.uniform(math.log(smallest), math.log(largest)))
    tone = int(rng.integers(len(SKIN_TONES))) if category.colour == "skin" else None
    colours = _colours(math.pi if category.colour == "any" else 0.2, rng)
    mirrored = glyph not in LETTERED and bool(rng.random() < 0.5)
    angle = rng.normal(0, 40 if category.size == "small" else 14)
    return sprite(glyph, side, angle, mirrored, colours, tone)


def _colours(most_hue: float, rng: np.random.Generator) -> np.ndarray:
    """A random tint: hue within ± most_hue, duller or stronger, darker or lighter."""
    gains = rng.uniform(0.7, 1.1) * rng.uniform(0.9, 1.1, 3)
    return colour_matrix(rng.uniform(-most_hue, most_hue), rng.uniform(0.45, 1.1), gains)


def _place(
    layout: Layout,
    category: str | None,
    glyph: str,
    image: np.ndarray,
    band: tuple[float, float],
    must: bool,
    rng: np.random.Generator,
) -> None:
    """Put the sprite at the first random spot where nothing gets hidden too far; drop it if there is none.

    What must be placed goes on looking over the whole image, and takes the best spot seen if none is good.
    """
    mask, size = ink_mask(image), len(layout.owner)
    best, spot = -math.inf, (0, 0)
    for attempt in range(LAST_TRIES if must else TRIES):
        low, high = band if attempt < TRIES else (0.05, 0.95)
        left = round(rng.uniform(0.02, 0.98) * size - mask.shape[1] / 2)
        top = round(rng.uniform(low, high) * size - mask.shape[0] / 2)
        harm = layout.judge(mask, left, top)
        if harm > best:
            best, spot = harm, (left, top)
        if best >= 0:
            break
    if best >= 0 or must:
        layout.put(category, glyph, image, *spot)


def ink_mask(image: np.ndarray) -> np.ndarray:
    """(height, width) bool: where the sprite is more opaque than not."""
    return image[3] > 0.5


def photographed(canvas: np.ndarray, rng: np.random.Generator) -> Image.Image:
    """As a modest camera would see it: light, contrast, always noise, sometimes blur."""
    gains = (rng.uniform(0.75, 1.1) * rng.uniform(0.92, 1.08, 3)).astype(np.float32)
    contrast = rng.uniform(0.7, 1.05)
    pixels = (contrast * gains)[:, None, None] * canvas
    pixels += 128 * (1 - contrast)
    spread = int(rng.integers(4, 22))
    pixels += rng.integers(-spread, spread + 1, pixels.shape, dtype=np.int8)
    pixels = pixels.clip(0, 255, out=pixels).astype(np.uint8)
    image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)), "RGB")
    if rng.random() >= 0.35:
        return image
    return image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.9) * image.width / 160))
