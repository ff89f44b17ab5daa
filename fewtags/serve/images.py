"""From the bytes of a stranger's file to what the network sees; the same pixels as `fewtags predict`."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, UnidentifiedImageError

from fewtags.images.loading import decoded
from fewtags.serve.limits import Limits, Refusal

# Pillow reads many more kinds; each is code that a stranger's file could reach, and some start other programs.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")


def prepared(content: bytes, size: int, limits: Limits) -> np.ndarray:
    """(3, size, size) float32, RGB from 0 to 1; a Refusal when there is no image in it, or too large a one."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            check_pixels(*image.size, limits)
            upright = decoded(image)
    except Refusal:
        raise
    except UnidentifiedImageError as problem:
        raise Refusal(422, "not an image; send JPEG, PNG, WebP, BMP, TIFF or GIF") from problem
    except Image.DecompressionBombError as problem:
        raise Refusal(413, f"too many pixels ({problem}); send it smaller") from problem
    except Exception as problem:  # a malformed file may make a decoder raise anything
        raise Refusal(422, f"the image cannot be read ({problem}); is the file damaged?") from problem
    return as_input(upright, size)


def check_pixels(width: int, height: int, limits: Limits) -> None:
    if width * height > limits.max_pixels:
        raise Refusal(
            413,
            f"{width} x {height} pixels, and {limits.max_pixels:,} in all is the most; send it smaller",
        )


def as_input(image: Image.Image, size: int) -> np.ndarray:
    """RGB image → (3, size, size) float32 from 0 to 1, rounded as torchvision does."""
    pixels = np.asarray(image.resize((size, size), Image.Resampling.BILINEAR))
    return np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32) * np.float32(1 / 255)
