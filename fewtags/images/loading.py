"""Images by name: where they come from is a source's business; what comes out is RGB, upright and whole."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from fewtags.errors import UserError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"})

# JPEGs at least twice as large are decoded at a half, a quarter or an eighth of their size, never below this.
# It is more than twice what any training crop looks at, so nothing visible is lost, and decoding is 3x faster.
JPEG_SIDE = 1024


class ImageSource(Protocol):
    """Opens images by the names a label table gives them."""

    def open(self, image: str) -> Image.Image:
        """The image as RGB, turned upright; a UserError that names the file when it cannot be read."""
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
        except OSError as problem:
            raise _unreadable(path, problem) from problem
        return f"{status.st_size}-{status.st_mtime_ns}"


def open_image(path: Path) -> Image.Image:
    """Decode a file completely, so that a truncated one fails here and not in the middle of training."""
    try:
        with Image.open(path) as image:
            return decoded(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as problem:
        raise _unreadable(path, problem) from problem


def decoded(image: Image.Image) -> Image.Image:
    """An image whose header alone was read → RGB, upright and whole."""
    image.draft("RGB", (JPEG_SIDE, JPEG_SIDE))
    image.load()
    return as_rgb(ImageOps.exif_transpose(image))


def as_rgb(image: Image.Image) -> Image.Image:
    """Any mode to RGB: 16-bit grey is scaled, not cut off, and what is transparent becomes white."""
    if image.mode.startswith(("I", "F")):
        image = _eight_bit(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def _eight_bit(image: Image.Image) -> Image.Image:
    """Grey of more than 8 bits: 16-bit values span 0 to 65535; others span what they hold."""
    values = np.asarray(image, dtype=np.float64)
    top = 65535.0 if image.mode.startswith("I") and values.max(initial=0) > 255 else values.max(initial=0)
    scaled = values * (255 / top) if top > 255 or 0 < top <= 1 else values
    return Image.fromarray(scaled.clip(0, 255).round().astype(np.uint8))


def _unreadable(path: Path, problem: Exception) -> UserError:
    if isinstance(problem, FileNotFoundError):
        return UserError(f"{path}: there is no such image")
    if isinstance(problem, IsADirectoryError):
        return UserError(f"{path}: this is a folder, not an image")
    if isinstance(problem, UnidentifiedImageError):
        return UserError(f"{path}: not an image, or of a kind that cannot be read; convert it to JPEG or PNG")
    return UserError(f"{path}: the image cannot be read ({problem}); is the file damaged?")


def list_images(folder: str | Path) -> list[str]:
    """Image files below a folder, as sorted relative paths with forward slashes; hidden ones are left out."""
    root = Path(folder)
    found = (path.relative_to(root) for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
    visible = (path for path in found if not any(part.startswith(".") for part in path.parts))
    return sorted(path.as_posix() for path in visible if (root / path).is_file())
