"""Images by name: where they come from is a source's business; what comes out is RGB, upright and whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from fewtags.errors import BadImageError, UserError, printable

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"})
STARTS_PROGRAMS = {"EPS"}
"""Pillow hands these to another program (Ghostscript), which runs what is in them."""

# JPEGs at least twice as large are decoded at a half, a quarter or an eighth of their size, never below this.
# It is more than twice what any training crop looks at, so nothing visible is lost, and decoding is 3x faster.
JPEG_SIDE = 1024


class ImageSource(Protocol):
    """Opens images by the names a label table gives them."""

    def open(self, image: str) -> Image.Image:
        """The image as RGB, turned upright; a BadImageError that names the file when it cannot be read."""
        ...

    def stamp(self, image: str) -> str:
        """Changes whenever the image's content does; cheap, so the image itself is not read."""
        ...


class FolderImages:
    """Image files below a folder, named by their path relative to it."""

    def __init__(self, root: str | Path):
        self.root = Path(root)

    def path(self, image: str) -> Path:
        return self.root / image

    def open(self, image: str) -> Image.Image:
        return open_image(self.path(image))

    def stamp(self, image: str) -> str:
        path = self.path(image)
        try:
            status = path.stat()
        except (OSError, ValueError) as problem:
            raise _unreadable(path, problem) from problem
        return f"{status.st_size}-{status.st_mtime_ns}"


def open_image(path: Path) -> Image.Image:
    """Decode a file completely, so that a truncated one fails here and not in the middle of training."""
    try:
        _check_is_file(path)
        with Image.open(path, formats=readable_formats()) as image:
            return decoded(image)
    except Exception as problem:  # a malformed file may make a decoder raise anything
        raise _unreadable(path, problem) from problem


def _check_is_file(path: Path) -> None:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):  # it would be waited for without end
        raise OSError("it is a pipe or a device, not a file")


@cache
def readable_formats() -> tuple[str, ...]:
    """All that Pillow reads by itself."""
    Image.init()
    return tuple(kind for kind in Image.ID if kind not in STARTS_PROGRAMS)


def decoded(image: Image.Image) -> Image.Image:
    """An image whose header alone was read → RGB, upright and whole."""
    image.draft("RGB", (JPEG_SIDE, JPEG_SIDE))
    image.load()
    ImageOps.exif_transpose(image, in_place=True)  # most images are upright and RGB: no copy is made of them
    return as_rgb(image)


def as_rgb(image: Image.Image) -> Image.Image:
    """Any mode to RGB: 16-bit grey is scaled, not cut off, and what is transparent becomes white."""
    if image.mode.startswith(("I", "F")):
        image = _eight_bit(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _eight_bit(image: Image.Image) -> Image.Image:
    """Grey of more than 8 bits: 16-bit values span 0 to 65535; others span what they hold."""
    values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0, neginf=0)
    top = 65535.0 if image.mode.startswith("I") and values.max(initial=0) > 255 else values.max(initial=0)
    scaled = values * (255 / top) if top > 255 or 0 < top <= 1 else values
    return Image.fromarray(scaled.clip(0, 255).round().astype(np.uint8))


def _unreadable(path: Path, problem: Exception) -> BadImageError:
    named = printable(str(path))
    if isinstance(problem, FileNotFoundError):
        return BadImageError(f"{named}: there is no such image")
    if isinstance(problem, IsADirectoryError):
        return BadImageError(f"{named}: this is a folder, not an image")
    if isinstance(problem, UnidentifiedImageError):
        return BadImageError(f"{named}: not an image, or of a kind that cannot be read; convert it to JPEG or PNG")
    reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return BadImageError(f"{named}: the image cannot be read ({printable(reason)}); is the file damaged?")


def list_images(folder: str | Path) -> list[str]:
    """Image files below a folder, as sorted relative paths with forward slashes; hidden ones are left out.

    A link that leads nowhere is listed too: opening it says so, leaving it out would hide that it is there.
    """
    root = Path(folder)
    found = (path.relative_to(root) for path in _files_below(root) if path.suffix.lower() in SUFFIXES)
    names = sorted(path.as_posix() for path in found)
    for name in names:
        if printable(name) != name:
            raise UserError(f"{root}: {printable(name)} is not named in UTF-8; rename it")
    return names


def _files_below(root: Path) -> Iterator[Path]:
    """What is no folder and not hidden. Links to folders are followed, each folder once: they may form a loop."""
    seen: set[tuple[int, int]] = set()
    for folder, below, files in os.walk(root, followlinks=True, onerror=_refuse_folder):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            below.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield from (Path(folder, name) for name in files if not name.startswith("."))


def _refuse_folder(problem: OSError) -> None:
    raise UserError(f"{printable(str(problem.filename))}: the folder cannot be read ({problem.strerror})")
