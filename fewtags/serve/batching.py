"""Images of requests that come at about the same time are computed together, by one thread.

While a batch is computed the next one gathers, so under load batches fill by themselves; `max_wait` is what an
image spends at most on waiting for company when there is none.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fewtags.serve.limits import busy

log = logging.getLogger("uvicorn.error")

State = Literal["starting", "ready", "failed", "stopping"]


@dataclass
class Waiting:
    image: np.ndarray
    """(3, S, S)"""
    answer: Future[np.ndarray] = field(default_factory=Future)
    """(C,) probabilities"""
    since: float = field(default_factory=time.monotonic)


class Batcher:
    """compute: (N, 3, S, S) → (N, C). `observe` is told the size of each batch and the seconds it took."""

    def __init__(
        self,
        compute: Callable[[np.ndarray], np.ndarray],
        max_batch: int,
        max_wait: float,
        observe: Callable[[int, float], None] = lambda size, seconds: None,
    ):
        self.compute, self.max_batch, self.max_wait, self.observe = compute, max_batch, max_wait, observe
        self.state: State = "starting"
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._closing = threading.Lock()  # so that nothing is queued behind the end
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)

    def start(self, image_size: int) -> None:
        """Warm up and then compute, in a thread of its own; `state` says how far it is."""
        self._warm_up_shape = (3, image_size, image_size)
        self._thread.start()

    def submit(self, image: np.ndarray) -> Future[np.ndarray]:
        with self._closing:
            if self.state == "stopping":
                raise busy("the server is shutting down; try again when it is back")
            waiting = Waiting(image)
            self._waiting.put(waiting)
        return waiting.answer

    def close(self) -> None:
        """Finish all that is queued, then stop."""
        with self._closing:
            self.state = "stopping"
            self._waiting.put(None)
        self._thread.join()

    def __len__(self) -> int:
        return self._waiting.qsize()

    def _work(self) -> None:
        self._warm_up()
        while batch := self._next_batch():
            self._answer([waiting for waiting in batch if waiting.answer.set_running_or_notify_cancel()])

    def _warm_up(self) -> None:
        """The first batches of a network are slow: memory is found and kernels are chosen."""
        try:
            for size in {1, self.max_batch}:
                self.compute(np.zeros((size, *self._warm_up_shape), np.float32))
            reached: State = "ready"
        except Exception:
            log.exception("the model failed on a batch of %d black images", self.max_batch)
            reached = "failed"
        with self._closing:
            self.state = "stopping" if self.state == "stopping" else reached

    def _next_batch(self) -> list[Waiting]:
        """At least one image, unless there will be no more."""
        first = self._waiting.get()
        batch = [] if first is None else [first]
        while batch and len(batch) < self.max_batch:
            left = batch[0].since + self.max_wait - time.monotonic()
            try:
                another = self._waiting.get(timeout=left) if left > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            if another is None:
                self._waiting.put(None)  # to be found again by the next call
                break
            batch.append(another)
        return batch

    def _answer(self, batch: list[Waiting]) -> None:
        """Where a batch fails, each of its images is tried alone, so that only the one at fault fails."""
        if not batch:
            return
        started = time.monotonic()
        try:
            rows = self.compute(np.stack([waiting.image for waiting in batch]))
        except Exception as problem:
            if len(batch) == 1:
                batch[0].answer.set_exception(problem)
            else:
                for waiting in batch:
                    self._answer([waiting])
            return
        self.observe(len(batch), time.monotonic() - started)
        for waiting, row in zip(batch, rows, strict=True):
            waiting.answer.set_result(row)
