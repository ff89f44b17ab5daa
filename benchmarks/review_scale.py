"""`fewtags review` with 10 million suggestions: time to the next question, of a filter and a bulk; and memory.

    python -m benchmarks.review_scale --rows 10000000

Everything goes through the HTTP API in process, JSON included. The file and its index go to a temporary folder.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from fastapi import FastAPI
from starlette.testclient import TestClient

from fewtags.completion.suggestions import SCHEMA
from fewtags.images.loading import FolderImages
from fewtags.review.app import Parts, create_app
from fewtags.review.decisions import Decisions
from fewtags.review.images import Pictures
from fewtags.review.index import Names, open_index
from fewtags.review.orders import ORDERS
from fewtags.review.security import Policy
from fewtags.review.session import Review

CATEGORIES = 80
PIECE = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--make-only", action="store_true", help="write the file and end, so as not to count it")
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    names = Names(
        [f"images/{number:07d}.jpg" for number in range(-(-asked.rows // CATEGORIES))],
        [f"category {number}" for number in range(CATEGORIES)],
        np.arange(CATEGORIES) * 7 % 300,
    )
    if not (folder / "suggestions.parquet").is_file():
        write_rows(folder / "suggestions.parquet", asked.rows)
    if not asked.make_only:
        measure(folder, names, asked.questions)


def write_rows(path: Path, rows: int) -> None:
    from tests.review.fabricate import many_suggestions

    with pq.ParquetWriter(path, SCHEMA) as writer:
        for start in range(0, rows, PIECE):
            table, _ = many_suggestions(min(PIECE, rows - start), CATEGORIES, seed=start, first=start)
            writer.write_table(table, row_group_size=100_000)


def measure(folder: Path, names: Names, questions: int) -> None:
    import fewtags.predict  # noqa: F401  (attention needs it, so that its memory counts)

    with timed("index, built or opened"):
        index = open_index(folder / "suggestions.parquet", names, folder / "cache")
    with timed("index, opened"):
        index = open_index(folder / "suggestions.parquet", names, folder / "cache")
    with timed("answers, read"):
        review = Review(index, names, Decisions(folder / "review.sqlite"))
    with TestClient(app_of(review, names), base_url="http://127.0.0.1:8765") as client:
        with timed("all questions"):
            ask(client, questions)
        bulk(client)
    review.decisions.close()


def ask(client: TestClient, questions: int) -> None:
    """Twenty-five answers under one filter and order, then another."""
    nexts, answers, filters = Times("next question"), Times("answer"), Times("filter change")
    for number in range(questions):
        step = number // 25
        query = f"/api/next?count=7&tab=a&order={ORDERS[step % 4]}&{chosen_filter(step)}"
        if number % 25 == 0:
            filters.of(lambda query=query: client.get(query))
        item = nexts.of(lambda query=query: client.get(query))["items"][0]
        body = {"image": item["image"], "category": item["category"], "answer": "yes", "tab": "a"}
        body["request"] = f"{time.time()} {number}"
        answers.of(lambda body=body: client.post("/api/answers", json=body))
    for times in (nexts, answers, filters):
        times.show()


def chosen_filter(step: int) -> str:
    narrow = f"category=category%20{step * 7 % CATEGORIES}&low=0.{1 + step % 5}&decision=unknown"
    return [narrow, f"low=0.{10 + step}", "origin=cross", f"high=0.{10 + step}", ""][step % 5]


def bulk(client: TestClient) -> None:
    with timed("bulk preview"):
        count = client.get("/api/bulk?level=0.9").json()["count"]
    body = {"answer": "yes", "level": 0.9, "expected": count, "tab": "a", "request": f"bulk {time.time()}"}
    with timed(f"bulk of {count:,}"):
        assert client.post("/api/bulk", json=body).json()["count"] == count
    with timed("its undo"):
        assert client.post("/api/undo", json={"tab": "a"}).json()["entries"] == count


def app_of(review: Review, names: Names) -> FastAPI:
    unused: dict = {"attention": None, "export": None, "labels_csv": None}
    pictures = Pictures(FolderImages("."), names.images)
    parts = Parts(review=review, pictures=pictures, order="value", data="", run="", suggestions="", **unused)
    return create_app(parts, Policy())


class Times:
    """Wall and CPU time of each request: on a busy machine they differ."""

    def __init__(self, name: str):
        self.name, self.wall, self.cpu = name, [], []

    def of(self, act):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = act()
        self.wall.append(1000 * (time.perf_counter() - wall))
        self.cpu.append(1000 * (time.process_time() - cpu))
        assert answer.status_code == 200
        return answer.json()

    def show(self) -> None:
        for kind, times in (("wall", self.wall), ("CPU", self.cpu)):
            middle, high, most = np.percentile(times, (50, 95, 100))
            print(
                f"{self.name:20} {kind:5} median {middle:6.1f} ms, p95 {high:6.1f} ms, most {most:6.1f} ms",
                flush=True,
            )


@contextmanager
def timed(name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"{name:26} {time.perf_counter() - started:8.2f} s, then {memory()}", flush=True)


def memory() -> str:
    """Own, and of mapped files, which the system takes back when it needs room; and the most there ever was."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {
        line.split(":")[0]: int(line.split()[1]) // 1024 for line in lines if line.startswith(("Rss", "VmHWM"))
    }
    return f"own {found['RssAnon']} MB, mapped {found['RssFile']} MB, most {found['VmHWM']} MB"


if __name__ == "__main__":
    main()
