"""Whatever the file, the server sees the pixels that `predict` sees, and refuses what it must."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fewtags.images.loading import open_image
from fewtags.images.transforms import evaluation_transform
from fewtags.serve.images import prepared
from fewtags.serve.limits import Limits, Refusal
from tests.serve.fabricate import picture

RNG = np.random.default_rng(0)
NOISE = Image.fromarray(RNG.integers(0, 256, (33, 47, 3), dtype=np.uint8))


def saved(image: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be shown turned by 90 degrees
    return saved(NOISE, "JPEG", exif=exif)


FILES = {
    "png": saved(NOISE, "PNG"),
    "jpeg": saved(NOISE, "JPEG"),
    "large jpeg": saved(NOISE.resize((2100, 2300)), "JPEG"),
    "turned jpeg": turned(),
    "cmyk jpeg": saved(NOISE.convert("CMYK"), "JPEG"),
    "transparent png": saved(NOISE.convert("RGBA").point(lambda value: value // 2), "PNG"),
    "16-bit png": saved(Image.fromarray(RNG.integers(0, 65536, (20, 30)).astype(np.uint16)), "PNG"),
    "gif": saved(NOISE.quantize(16), "GIF"),
    "webp": saved(NOISE, "WEBP"),
    "bmp": saved(NOISE, "BMP"),
    "tiff": saved(NOISE, "TIFF"),
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_pixels_as_predict(name: str, tmp_path: Path):
    (tmp_path / "image").write_bytes(FILES[name])
    transform = evaluation_transform(24, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    expected = transform(open_image(tmp_path / "image")).numpy()
    found = prepared(FILES[name], 24, Limits())
    assert (found.shape, found.dtype) == ((3, 24, 24), np.float32)
    assert np.array_equal(found, expected)
    assert found.std() > 0.02


def refusal(content: bytes, **limits) -> Refusal:
    with pytest.raises(Refusal) as refused:
        prepared(content, 24, Limits(**limits))
    return refused.value


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and has next to nothing inside: what a decompression bomb begins with."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_too_many_pixels_are_refused_before_they_are_decoded():
    found = refusal(picture(size=(101, 100)), max_pixels=10_000)
    assert found.status == 413
    assert found.message == "101 x 100 pixels, and 10,000 in all is the most; send it smaller"
    assert prepared(picture(size=(100, 100)), 24, Limits(max_pixels=10_000)).shape == (3, 24, 24)
    assert refusal(png_header(9000, 9000)).status == 413
    enormous = refusal(png_header(60_000, 60_000))  # beyond what Pillow itself would open
    assert enormous.status == 413
    assert "send it smaller" in enormous.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "not an image; send JPEG, PNG"),
        (b"", "not an image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "not an image"),
        (saved(NOISE, "PPM"), "not an image"),
        (FILES["png"][:800], "cannot be read .* is the file damaged"),
        (FILES["jpeg"][:500], "cannot be read .* is the file damaged"),
        (png_header(50, 50)[:-20], "cannot be read .* is the file damaged"),
    ],
)
def test_what_is_no_whole_image_of_a_kind_we_take_is_refused(content: bytes, message: str):
    with pytest.raises(Refusal, match=message) as refused:
        prepared(content, 24, Limits())
    assert refused.value.status == 422
