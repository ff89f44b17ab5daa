"""Many clients at once, in this process: each gets its own answer, and batches do form."""

from __future__ import annotations

import asyncio
import time

import httpx2
import pytest
from starlette.applications import Starlette

from fewtags.serve.app import create_app
from fewtags.serve.limits import Limits
from tests.serve.fabricate import ColourModel, picture


async def post_all(app: Starlette, pictures: list[bytes]) -> list[httpx2.Response]:
    transport = httpx2.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=transport) as client:
        posts = (client.post("http://fewtags/predict?threshold=0", content=content) for content in pictures)
        return await asyncio.gather(*posts)


def test_64_requests_at_once_each_get_their_own_answer():
    model = ColourModel(seconds=0.02)  # as a network would, a batch takes its time
    colours = [(4 * place, 255 - 4 * place, 2 * place) for place in range(64)]
    app = create_app(model, Limits(max_batch=16, max_queue=64))
    started = time.monotonic()
    answers = asyncio.run(post_all(app, [picture(*colour) for colour in colours]))
    assert time.monotonic() - started < 15
    for colour, answer in zip(colours, answers, strict=True):
        assert answer.status_code == 200
        found = {tag["category"]: tag["probability"] for tag in answer.json()["results"][0]["tags"]}
        expected = dict(zip(("red", "green", "blue"), colour, strict=True))
        assert found == {name: pytest.approx(value / 255, abs=1e-6) for name, value in expected.items()}
    served = model.batches[2:]  # after the warm-up
    assert sum(served) == 64
    assert max(served) <= 16
    assert len(served) < 32  # most of them shared a batch


def test_more_than_the_queue_holds_are_turned_away_and_the_others_served():
    model = ColourModel(seconds=0.05)
    app = create_app(model, Limits(max_batch=4, max_queue=16, max_images=4))
    answers = asyncio.run(post_all(app, [picture(4 * place) for place in range(64)]))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= 16
    for place, answer in enumerate(answers):
        if answer.status_code == 200:
            (red, *_), *_ = ([t for t in r["tags"] if t["category"] == "red"] for r in answer.json()["results"])
            assert red["probability"] == pytest.approx(4 * place / 255, abs=1e-6)
        else:
            assert answer.headers["retry-after"] == "1"
