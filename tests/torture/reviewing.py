"""`fewtags review`, killed while answers arrive: every answer that was acknowledged has to be there afterwards."""

from __future__ import annotations

import http.client
import itertools
import json
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

from fewtags.completion.suggestions import read_suggestions
from fewtags.review.decisions import standing
from fewtags.review.queue import STATES
from tests.nursery import LONGEST, Job
from tests.review.browser import free_port
from tests.torture.cases import Case, Workshop, digest
from tests.torture.files_left import copy_of

SINGLE = 40
"""Answers given one by one; the rest are answered in one bulk."""


class Review(Case):
    name = "review"
    ends_with = 130
    at_writes = 0.2

    def __init__(self, workshop: Workshop):
        super().__init__(workshop)
        self.suggestions = workshop.folder / "to-review"
        command = ["complete", workshop.run, workshop.data, "--out", self.suggestions]
        job = workshop.start(command, workshop.folder / "logs")
        assert job.finish() == 0, job.said()
        entries = read_suggestions(self.suggestions / "suggestions.parquet").to_pylist()
        self.answers = [
            {"image": entry["image"], "category": entry["category"], "answer": answer}
            for entry, answer in zip(entries[:SINGLE], itertools.cycle(("yes", "no", "skipped")), strict=False)
        ]
        self.port = free_port()

    def cache(self, place: Path) -> Path:
        """Its own: the index is built anew, and may be killed too."""
        return place / "cache"

    def arguments(self, place: Path) -> list[Any]:
        made, shop = place / "made", self.workshop
        if not made.exists():
            shutil.copytree(self.suggestions, made)
        return ["review", shop.run, shop.data, "--suggestions", made, "--no-open", "--port", self.port]

    def results(self, place: Path) -> dict[str, Any]:
        file = place / "reviewed.csv"
        job = self.workshop.start([*self.arguments(place), "--export", file], place, self.cache(place))
        assert job.finish() == 0, job.said()
        return {"labels.csv": digest(file), "answers": sorted(standing(place / "made" / "review.sqlite"))}

    def kill(self, job: Job, moment: float, kept: set[int]) -> None:
        timer = threading.Timer(moment, job.kill)
        timer.start()
        self.answer_all(job, kept)
        timer.join()

    def end(self, job: Job, kept: set[int]) -> int:
        if self.answer_all(job, kept):
            job.kill(signal.SIGINT)
        return job.finish()

    def check(self, place: Path, kept: set[int]) -> None:
        """All that the server said it had saved is in the file."""
        if not kept:
            return
        with copy_of(place / "made" / "review.sqlite") as file:
            said = {(image, category): STATES[answer] for image, category, answer in standing(file)}
        for number in kept:
            wanted = self.answers[number]
            assert said.get((wanted["image"], wanted["category"])) == wanted["answer"], f"lost: {wanted}"

    def answer_all(self, job: Job, kept: set[int]) -> bool:
        """Answer as a page does, one after the other, until all is answered or the server is gone."""
        try:
            connection = self._connected(job)
            for number in sorted(set(range(len(self.answers))) - kept):
                body = {**self.answers[number], "tab": "torture", "request": f"request-{number}"}
                assert "state" in _call(connection, "/api/answers", body)
                kept.add(number)
            self._answer_rest(connection)
            return True
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return False

    def _answer_rest(self, connection: http.client.HTTPConnection) -> None:
        count = _call(connection, "/api/bulk?answer=no&level=1")["count"]
        if count:
            body = {"answer": "no", "level": 1.0, "expected": count, "tab": "torture", "request": "the-rest"}
            assert _call(connection, "/api/bulk", body) == {"count": count}

    def _connected(self, job: Job) -> http.client.HTTPConnection:
        """As soon as the server listens; an error if it ends before."""
        until = time.perf_counter() + LONGEST
        while time.perf_counter() < until:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                connection.connect()
                return connection
            except ConnectionRefusedError:
                if not _runs(job.pid):
                    raise
                time.sleep(0.01)
        raise AssertionError(f"the server did not come up: {job.said()}")


def _runs(pid: int) -> bool:
    """A process that ended stays in the list, as Z, until its parent has asked for it."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state not in "ZX"


def _call(connection: http.client.HTTPConnection, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    content, headers = (None, {}) if body is None else (json.dumps(body), {"Content-Type": "application/json"})
    connection.request("GET" if body is None else "POST", path, content, headers)
    return json.loads(connection.getresponse().read())
