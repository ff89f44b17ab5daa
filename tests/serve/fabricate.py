"""A model whose right answers are known by hand, and pictures for it."""

from __future__ import annotations

import io
import threading
import time

import numpy as np
from PIL import Image

from fewtags.model_card import ModelCard

SIZE = 8
CARD = ModelCard(
    categories=["red", "green", "blue"],
    decision_thresholds=[0.5, 0.25, 0.75],
    image_size=SIZE,
    method="plain",
    backbone="none",
    recipe_hash="0123",
    fewtags_version="0",
)


class ColourModel:
    """The probability of a colour is its mean over the image. Fails on images that are white all over."""

    runtime = "arithmetic"

    def __init__(self, seconds: float = 0.0):
        self.card, self.seconds = CARD, seconds
        self.batches: list[int] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def probabilities(self, images: np.ndarray) -> np.ndarray:
        self.go_on.wait(10)
        time.sleep(self.seconds)
        self.batches.append(len(images))
        if (images.min((1, 2, 3)) > 0.999).any():
            raise FloatingPointError("white")
        return images.mean((2, 3))


def picture(
    red: int = 0, green: int = 0, blue: int = 0, kind: str = "PNG", size: tuple[int, int] = (20, 10)
) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (red, green, blue)).save(file, kind)
    return file.getvalue()
