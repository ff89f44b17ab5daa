"""The images of the data set, scaled for the screen. They are asked for by number, never by path."""

from __future__ import annotations

import hashlib
import io
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from PIL import Image

from fewtags.images.loading import ImageSource

SIDES = {"full": 1280, "thumb": 256}
KEPT_BYTES = 64 * 1024 * 1024


class Picture(NamedTuple):
    jpeg: bytes
    etag: str


class Pictures:
    """JPEGs by number and size; the latest are kept. Safe to call from several threads."""

    def __init__(self, source: ImageSource, images: Sequence[str]):
        self.source, self.images = source, images
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def etag(self, number: int, size: str) -> str:
        stamp = f"{self.images[number]}\n{self.source.stamp(self.images[number])}\n{size}"
        return f'"{hashlib.blake2b(stamp.encode(), digest_size=12).hexdigest()}"'

    def picture(self, number: int, size: str) -> Picture:
        etag = self.etag(number, size)
        with self._lock:
            jpeg = self._kept.get(etag)
        if jpeg is None:
            jpeg = self._encoded(number, SIDES[size])
            self._keep(etag, jpeg)
        return Picture(jpeg, etag)

    def _encoded(self, number: int, side: int) -> bytes:
        image = self.source.open(self.images[number])
        image.thumbnail((side, side), Image.Resampling.LANCZOS)
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=88)
        return stream.getvalue()

    def _keep(self, etag: str, jpeg: bytes) -> None:
        with self._lock:
            self._bytes += len(jpeg) - len(self._kept.get(etag, b""))
            self._kept[etag] = jpeg
            while self._bytes > KEPT_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1])
