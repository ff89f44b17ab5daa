"""A disk that takes no more answers: none is said to be saved that is not, and later ones are."""

from __future__ import annotations

import itertools
from pathlib import Path

from starlette.testclient import TestClient

from fewtags.review.decisions import Decisions, standing
from fewtags.review.queue import SKIPPED
from tests.review.fabricate import make_app, make_review
from tests.review.test_app import BASE, answer


def fill(decisions: Decisions) -> None:
    """SQLite is allowed no page more than it has: it then says what it says of a full disk."""
    decisions._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (pages,) = decisions._connection.execute("PRAGMA page_count").fetchone()
    decisions._connection.execute(f"PRAGMA max_page_count = {pages}")


def make_room(decisions: Decisions) -> None:
    decisions._connection.execute("PRAGMA max_page_count = 100000")


def test_an_answer_that_is_not_kept_is_not_acknowledged(tmp_path: Path):
    place, review = make_review(tmp_path)
    client = TestClient(make_app(place, review), base_url=BASE)
    item = client.get("/api/next?tab=a").json()["items"][0]
    fill(review.decisions)
    answers = zip(range(500), itertools.cycle(("yes", "no")), strict=False)
    acknowledged = list(itertools.takewhile(lambda given: saved(client, item, *given), answers))
    assert 0 < len(acknowledged) < 500
    refused, last = len(acknowledged), acknowledged[-1][1]
    assert len(review.decisions.history(500)) == len(acknowledged)
    assert client.get(f"/api/items/{item['row']}").json()["state"] == last
    make_room(review.decisions)
    assert saved(client, item, refused, "skipped")  # the page sends it again
    assert list(standing(review.decisions.path)) == [(item["image"], item["category"], SKIPPED)]
    review.decisions.close()


def saved(client: TestClient, item: dict, number: int, value: str) -> bool:
    reply = answer(client, item, value, f"request-{number}")
    if reply.status_code == 507:  # the page keeps the answer, and tries again
        assert "not saved yet" in reply.json()["detail"]
    return reply.status_code == 200
