"""From a request to probabilities: places, reading, decoding, batching, and what to say when one of them fails."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from starlette.requests import Request

from fewtags.serve.batching import Batcher
from fewtags.serve.images import prepared
from fewtags.serve.limits import Limits, Places, Refusal
from fewtags.serve.metrics import Metrics
from fewtags.serve.models import Model
from fewtags.serve.uploads import Upload, read_uploads

log = logging.getLogger("uvicorn.error")
Result = TypeVar("Result")
PATHS = ("/predict", "/health", "/categories", "/metrics", "/openapi.json")


@dataclass(frozen=True)
class Answer:
    name: str
    result: np.ndarray | Refusal
    """(C,) probabilities, or why there are none."""


class Service:
    def __init__(self, model: Model, limits: Limits):
        self.model, self.limits = model, limits
        self.metrics = Metrics(PATHS)
        self.places = Places(limits.max_queue)
        self.batcher = Batcher(
            model.probabilities, limits.max_batch, limits.max_wait_ms / 1000, self.metrics.batch
        )
        self._decoders = ThreadPoolExecutor(os.cpu_count() or 1, "decoding")

    def start(self) -> None:
        self.batcher.start(self.model.card.image_size)

    def close(self) -> None:
        """What was accepted is finished first."""
        self._decoders.shutdown()
        self.batcher.close()

    async def answers(self, request: Request) -> list[Answer]:
        """One for each image of the request, in its order; a Refusal of the request as a whole is raised."""
        with self.places.held() as held:
            uploads = await self._within_time(read_uploads(request, self.limits), 408, "arrived")
            held.grow_to(len(uploads))
            tasks = asyncio.gather(*(self._answer(upload) for upload in uploads))
            answers = await self._within_time(tasks, 504, "been tagged")
        refused = sum(isinstance(answer.result, Refusal) for answer in answers)
        self.metrics.images(len(answers) - refused, refused)
        return answers

    async def _within_time(self, task: Awaitable[Result], status: int, what: str) -> Result:
        seconds = self.limits.timeout
        try:
            return await asyncio.wait_for(task, seconds)
        except TimeoutError as problem:
            message = f"the request has not {what} within {seconds:g} s; send fewer or smaller images"
            raise Refusal(status, message) from problem

    async def _answer(self, upload: Upload) -> Answer:
        """A bad image fails alone."""
        try:
            return Answer(upload.name, await self._probabilities(upload.content))
        except Refusal as refusal:
            return Answer(upload.name, refusal)
        except Exception:
            log.exception("the model failed on an image")
            return Answer(upload.name, Refusal(500, "the model failed on this image; the server's log says more"))

    async def _probabilities(self, content: bytes | Refusal) -> np.ndarray:
        if isinstance(content, Refusal):
            raise content
        loop = asyncio.get_running_loop()
        image = await loop.run_in_executor(
            self._decoders, prepared, content, self.model.card.image_size, self.limits
        )
        return await asyncio.wrap_future(self.batcher.submit(image))
