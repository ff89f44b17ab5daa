"""Images of every kind that people have, and every kind of damage, each with what must become of it."""

from __future__ import annotations

import io
import os
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

SIZE = (24, 16)
SAME, REFUSED, WHOLE, EITHER = "same", "refused", "whole", "either"
"""Its colour is read; it is refused; either of these; a refusal, or some image of the size its header says."""
KINDS = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "BMP": ".bmp", "TIFF": ".tif", "GIF": ".gif"}
Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Case:
    about: str
    name: str
    expected: str
    put: Callable[[Path], object]
    """Puts it where the path says."""


def picture(colour: Colour, size: tuple[int, int] = SIZE) -> Image.Image:
    return Image.new("RGB", size, colour)


def noisy(colour: Colour, rng: random.Random) -> Image.Image:
    """The colour with texture, so that a file has something to lose when it is cut."""
    spread = np.random.default_rng(rng.randrange(2**31)).integers(-9, 10, (*SIZE[::-1], 3))
    return Image.fromarray((np.array(colour) + spread).clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def written(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def whole(colour: Colour, rng: random.Random) -> tuple[str, str, bytes]:
    """(about, suffix, content) of an image that has to be read as this colour."""
    image = picture(colour, rng.choice((SIZE, (1, 1), (1, 300), (300, 1), (1030, 7))))
    grey16 = np.full(SIZE[::-1], 257 * colour[0], np.uint16)
    shares = np.full((20, 20), colour[0] / 255, np.float32)
    shares[0, 0] = 1  # floating point spans what it holds: white has to be there
    turned = Image.Exif()
    turned[0x0112] = rng.randrange(1, 9)
    alpha = image.convert("RGBA")
    frames = [Image.new("RGB", image.size, (0, 0, 0)) for _ in range(3)]
    moving = {"save_all": True, "append_images": frames}
    grey = colour[0] == colour[1] == colour[2]
    made: list[tuple[str, str, bytes]] = [
        ("jpeg", ".jpg", encoded(image, "JPEG", quality=98)),
        ("progressive", ".jpeg", encoded(image, "JPEG", quality=98, progressive=True)),
        ("cmyk jpeg", ".jpg", encoded(image.convert("CMYK"), "JPEG", quality=98)),
        ("cmyk tiff", ".tiff", encoded(image.convert("CMYK"), "TIFF")),
        ("exif", ".jpg", encoded(image, "JPEG", quality=98, exif=turned)),
        ("png", ".PNG", encoded(image, "PNG")),
        ("png called jpg", ".jpg", encoded(image, "PNG")),
        ("jpeg called png", ".png", encoded(image, "JPEG", quality=98)),
        ("jpeg called txt", ".txt", encoded(image, "JPEG", quality=98)),
        ("palette png", ".png", encoded(image.convert("P", palette=Image.Palette.ADAPTIVE), "PNG")),
        ("palette gif", ".gif", encoded(image.convert("P", palette=Image.Palette.ADAPTIVE), "GIF")),
        ("moving gif", ".gif", encoded(image, "GIF", **moving)),
        ("moving webp", ".webp", encoded(image, "WEBP", lossless=True, **moving)),
        ("moving png", ".png", encoded(image, "PNG", **moving)),
        ("webp", ".webp", encoded(image, "WEBP", lossless=True)),
        ("bmp", ".bmp", encoded(image, "BMP")),
        ("tiff", ".tif", encoded(image, "TIFF")),
        ("opaque png", ".png", encoded(alpha, "PNG")),
        ("more behind it", ".png", encoded(image, "PNG") + b"trailing" * 20),
    ]
    if grey:
        made += [
            ("16-bit png", ".png", encoded(Image.fromarray(grey16), "PNG")),
            ("16-bit tiff", ".tif", encoded(Image.fromarray(grey16), "TIFF")),
            ("grey", ".jpg", encoded(image.convert("L"), "JPEG", quality=98)),
            ("grey with alpha", ".png", encoded(image.convert("LA"), "PNG")),
            (
                "floating point",
                ".tif",
                encoded(Image.fromarray(shares), "TIFF"),
            ),
        ]
    return rng.choice(made)


def bomb(rng: random.Random) -> tuple[str, str, bytes]:
    """A header that promises 30,000 x 30,000 pixels and more, in a file of a few bytes."""
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(3000))), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)
    gif = bytearray(encoded(picture((9, 9, 9)), "GIF"))
    gif[6:10] = struct.pack("<HH", 65535, 65535)
    bmp = bytearray(encoded(picture((9, 9, 9)), "BMP"))
    bmp[18:26] = struct.pack("<ii", 30_000, 30_000)
    return rng.choice(
        [("png bomb", ".png", png), ("gif bomb", ".gif", bytes(gif)), ("bmp bomb", ".bmp", bytes(bmp))]
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def damaged(colour: Colour, rng: random.Random) -> tuple[str, str, bytes, str]:
    """(about, suffix, content, expected) of a file with something wrong."""
    kind = rng.choice(list(KINDS))
    content = encoded(noisy(colour, rng), kind, **({"quality": 95} if kind == "JPEG" else {}))
    suffix = KINDS[kind]
    how = rng.randrange(7)
    if how == 0:
        return "empty", suffix, b"", REFUSED
    if how == 1:
        cut = rng.randrange(1, len(content))
        return f"{kind} cut at {cut} of {len(content)}", suffix, content[:cut], WHOLE
    if how == 2:
        return "text", suffix, rng.choice([b"not an image", b"<svg/>", b"%PDF-1.4", b"\x00" * 500]), REFUSED
    if how == 3:
        about, suffix, content = bomb(rng)
        return about, suffix, content, REFUSED
    if how == 4:
        return f"signature of {kind} alone", suffix, content[:12] + rng.randbytes(200), EITHER
    changed = bytearray(content)
    for _ in range(rng.choice((1, 3, 30))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    if how == 5:
        return f"{kind} with other bytes", suffix, bytes(changed), EITHER
    exif = encoded(picture(colour), "JPEG", quality=98, exif=b"Exif\x00\x00" + rng.randbytes(60))
    return "nonsense for exif", ".jpg", exif, EITHER


NAMES = (
    "with space",
    "日本語",
    "e\u0301clair",
    'a "quoted" one',
    "it's",
    "two\nlines",
    "tab\there",
    "-starts-with-a-hyphen",
    "100%25",
    "back\\slash",
    "semi;colon,comma",
    "🐕",
    "x" * 200,
    "#hash?query",
    "$HOME`id`",
)


def special(rng: random.Random) -> tuple[str, Callable[[Path], object]]:
    """What is no file of its own."""
    return rng.choice(
        [
            ("link to itself", lambda path: path.symlink_to(path.name)),
            ("link to nothing", lambda path: path.symlink_to("nowhere")),
            ("folder", lambda path: path.mkdir()),
            ("pipe", lambda path: os.mkfifo(path)),
            ("link to a device", lambda path: path.symlink_to("/dev/zero")),
        ]
    )


def case(seed: int, colour: Colour) -> Case:
    """The seed-th image, of this colour if it can be read."""
    rng = random.Random(seed)
    stem = rng.choice(NAMES) if rng.random() < 0.3 else "plain"
    chance = rng.random()
    if chance < 0.45:
        about, suffix, content = whole(colour, rng)
        return Case(about, f"{stem}{seed}{suffix}", SAME, written(content))
    if chance < 0.92:
        about, suffix, content, expected = damaged(colour, rng)
        return Case(about, f"{stem}{seed}{suffix}", expected, written(content))
    about, put = special(rng)
    return Case(about, f"{stem}{seed}.jpg", REFUSED, put)
