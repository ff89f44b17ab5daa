"""What a server takes on, and how it says no."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fewtags.errors import UserError


@dataclass(frozen=True)
class Limits:
    max_batch: int = 8
    """Images that the model computes at a time. Few, because a CPU gains nothing from more; a GPU does."""
    max_wait_ms: float = 5.0
    """How long an image waits for others to fill its batch."""
    max_queue: int = 128
    """Images, and requests still being read, that may be under way at once; beyond, 503."""
    max_images: int = 16
    """Images in one request."""
    max_image_mb: float = 10.0
    max_pixels: int = 50_000_000
    """Width times height, read from the header before anything is decoded."""
    timeout: float = 30.0
    """Seconds to receive a request, and again to answer it."""

    def __post_init__(self) -> None:
        if self.max_images > self.max_queue:
            raise UserError(
                f"--max-images {self.max_images} is more than --max-queue {self.max_queue}: such a request would "
                "always be refused; raise --max-queue"
            )

    @property
    def image_bytes(self) -> int:
        return round(self.max_image_mb * 1e6)


class Refusal(Exception):  # noqa: N818  (an answer, not a fault)
    """An answer other than tags: an HTTP status, what is wrong and what to do."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


def busy(message: str) -> Refusal:
    return Refusal(503, message, {"Retry-After": "1"})


class Places:
    """A bounded number of places for images under way. Used from the event loop alone, so it needs no lock."""

    def __init__(self, total: int):
        self.total, self.taken = total, 0

    def take(self, count: int) -> None:
        """All of them or none."""
        if self.taken + count > self.total:
            raise busy(f"{self.taken} images are under way and {self.total} is the most; try again in a second")
        self.taken += count

    @contextmanager
    def held(self) -> Iterator[Held]:
        """A first place for the request itself; whatever was taken is given back at the end."""
        self.take(1)
        held = Held(self)
        try:
            yield held
        finally:
            self.taken -= held.count


class Held:
    def __init__(self, places: Places):
        self.places, self.count = places, 1

    def grow_to(self, count: int) -> None:
        self.places.take(count - self.count)
        self.count = count
