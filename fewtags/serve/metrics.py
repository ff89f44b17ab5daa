"""Counts and histograms in Prometheus' text format (version 0.0.4), which needs no library."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Histogram:
    def __init__(self, bounds: Sequence[float]):
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterable[str]:
        below = 0
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{le="{bound}"}} {below}'
        yield f"{name}_sum {self.total}"
        yield f"{name}_count {below}"


class Metrics:
    """Written to from the event loop and from the thread of the batches."""

    def __init__(self, paths: Iterable[str]):
        self.paths = frozenset(paths)
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._images: Counter[str] = Counter()
        self._request_seconds = Histogram(SECONDS)
        self._batch_sizes, self._batch_seconds = Histogram(SIZES), Histogram(SECONDS)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Only `/predict` has a latency worth knowing. Unknown paths share a name, or strangers could add more."""
        with self._lock:
            self._requests[path if path in self.paths else "other", status] += 1
            if path == "/predict":
                self._request_seconds.add(seconds)

    def images(self, tagged: int, refused: int) -> None:
        with self._lock:
            self._images.update({"tagged": tagged, "refused": refused})

    def batch(self, size: int, seconds: float) -> None:
        with self._lock:
            self._batch_sizes.add(size)
            self._batch_seconds.add(seconds)

    def text(self, waiting: int, ready: bool) -> str:
        with self._lock:
            lines = [
                *_head("requests_total", "counter", "Requests answered."),
                *(
                    f'fewtags_requests_total{{path="{path}",status="{status}"}} {count}'
                    for (path, status), count in sorted(self._requests.items())
                ),
                *_head("images_total", "counter", "Images tagged or refused."),
                *(
                    f'fewtags_images_total{{outcome="{name}"}} {self._images[name]}'
                    for name in ("tagged", "refused")
                ),
                *_head("predict_seconds", "histogram", "Seconds from a /predict request to its answer."),
                *self._request_seconds.lines("fewtags_predict_seconds"),
                *_head("batch_size", "histogram", "Images computed together."),
                *self._batch_sizes.lines("fewtags_batch_size"),
                *_head("batch_seconds", "histogram", "Seconds a batch took to compute."),
                *self._batch_seconds.lines("fewtags_batch_seconds"),
                *_head("waiting_images", "gauge", "Images queued for a batch."),
                f"fewtags_waiting_images {waiting}",
                *_head("ready", "gauge", "1 once the model has warmed up."),
                f"fewtags_ready {int(ready)}",
            ]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, help_: str) -> tuple[str, str]:
    return f"# HELP fewtags_{name} {help_}", f"# TYPE fewtags_{name} {kind}"


class Counted:
    """Around an ASGI app: tells `metrics` about every request, whatever becomes of it."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, status = time.monotonic(), 500

        async def noticed(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, noticed)
        finally:
            self.metrics.request(scope["path"], status, time.monotonic() - started)
