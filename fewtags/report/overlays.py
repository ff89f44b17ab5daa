"""Images for the page: scaled down, with attention laid over them as heat, as data URIs."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

from fewtags.errors import UserError
from fewtags.images.loading import open_image

PHOTO_SIDE = 480
THUMBNAIL_SIDE = 176
STRONGEST = 0.78
"""Opacity of the heat where attention is greatest: the image stays visible beneath."""


def open_example(folder: Path, file: object) -> Image.Image:
    """An image of a run's folder of examples; by its name alone, so that no other file gets into a report."""
    if not isinstance(file, str) or file != Path(file).name:
        raise UserError(f"{folder}: {str(file)[:200]!r} is not the name of an example image")
    return open_image(folder / file)


def photo_uri(image: Image.Image) -> str:
    return data_uri(_fitted(image, PHOTO_SIDE))


def attention_uri(image: Image.Image, attention: Sequence[Sequence[float]]) -> str:
    return data_uri(overlay(_fitted(image, THUMBNAIL_SIDE), attention))


def overlay(image: Image.Image, attention: Sequence[Sequence[float]]) -> Image.Image:
    """The image, greyed, under heat: colour and opacity follow attention (H, W) scaled to its own range."""
    strength = _scaled(np.array(attention, dtype=np.float32))
    smooth = Image.fromarray(strength).resize(image.size, Image.Resampling.BICUBIC)
    strength = np.clip(np.asarray(smooth), 0, 1)[..., None]
    heat = matplotlib.colormaps["inferno"](strength[..., 0])[..., :3]
    grey = np.asarray(image.convert("L").convert("RGB"), dtype=np.float32) / 255
    mixed = (1 - STRONGEST * strength) * grey + STRONGEST * strength * heat
    return Image.fromarray((255 * mixed).round().astype(np.uint8))


def data_uri(image: Image.Image) -> str:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=86)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def _scaled(values: np.ndarray) -> np.ndarray:
    """To [0, 1]; a flat map is 0 everywhere."""
    values = np.nan_to_num(values)
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _fitted(image: Image.Image, side: int) -> Image.Image:
    """No side above `side`; small drawings are enlarged to it, so that heat on them is smooth."""
    scale = side / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.LANCZOS)
