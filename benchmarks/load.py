"""200 people at once, for 10 seconds, on this machine alone: does everybody get an answer, how soon, at what cost?

    python -m benchmarks.load review
    python -m benchmarks.load serve [RUN_OR_FILE]

The server is a process of its own, started as the command starts it. Each user keeps one connection and asks
again as soon as there is an answer. Of `review` a user takes a question, its image, and answers it; afterwards
every answer that was confirmed has to be in the database. Of `serve` a user posts a photograph, and waits a second
when told 503.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HOST = "127.0.0.1"
FIRST_ANSWER = 120.0
ANSWERS = ("yes", "no", "skipped")


class Connection:
    """One user's HTTP connection, opened again when the server closes it."""

    def __init__(self, port: int):
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json"
    ) -> tuple[int, bytes]:
        """Status and body."""
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(HOST, self.port)
        head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{self.port}\r\nContent-Type: {kind}\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await self.writer.drain()
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        content = await self.reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return int(lines[0].split()[1]), content

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


@dataclass
class Figures:
    """What was asked, how it was answered, and how long that took."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    async def timed(self, what: str, asking: Awaitable[tuple[int, bytes]]) -> tuple[int, bytes]:
        started = time.perf_counter()
        status, content = await asking
        self.statuses[what, status] += 1
        if status == 200:
            self.seconds.setdefault(what, []).append(time.perf_counter() - started)
        return status, content

    def lines(self, duration: float) -> list[str]:
        found = ["| request | answered | per second | p50 | p95 | worst | refused |", "|---" * 7 + "|"]
        for what, seconds in self.seconds.items():
            middle, slow = np.quantile(seconds, (0.5, 0.95))
            others = [(status, count) for (name, status), count in self.statuses.items() if name == what]
            refused = ", ".join(f"{count:,} with {status}" for status, count in others if status != 200) or "none"
            times = " | ".join(f"{1000 * value:,.0f} ms" for value in (middle, slow, max(seconds)))
            found.append(f"| {what} | {len(seconds):,} | {len(seconds) / duration:,.0f} | {times} | {refused} |")
        return found


User = Callable[[Connection, Figures, int, float], Awaitable[None]]


async def load(port: int, users: int, seconds: float, user: User) -> Figures:
    """All users at once until the time is over; a connection that breaks is counted, and the user comes back."""
    figures, end = Figures(), time.monotonic() + seconds

    async def one(number: int) -> None:
        connection = Connection(port)
        while time.monotonic() < end:
            try:
                await asyncio.wait_for(user(connection, figures, number, end), 60)
            except (OSError, EOFError, TimeoutError) as problem:
                figures.faults[type(problem).__name__] += 1
                connection.close()
        connection.close()

    await asyncio.gather(*(one(number) for number in range(users)))
    return figures


async def reviewer(connection: Connection, figures: Figures, number: int, end: float) -> None:
    """Question, image, answer."""
    status, content = await figures.timed("next question", connection.ask("GET", f"/api/next?tab=user{number}"))
    items = json.loads(content)["items"] if status == 200 else []
    if not items:
        return await asyncio.sleep(0.05)
    item = items[0]
    await figures.timed("image", connection.ask("GET", f"/api/images/{item['image_number']}/full"))
    answer = {
        "image": item["image"],
        "category": item["category"],
        "answer": ANSWERS[number % 3],
        "tab": f"user{number}",
        "request": uuid.uuid4().hex,
    }
    await figures.timed("answer", connection.ask("POST", "/api/answers", json.dumps(answer).encode()))


def poster(photographs: list[bytes]) -> User:
    async def post(connection: Connection, figures: Figures, number: int, end: float) -> None:
        content = photographs[number % len(photographs)]
        status, _ = await figures.timed("predict", connection.ask("POST", "/predict", content, "image/jpeg"))
        if status == 503:
            await asyncio.sleep(min(1.0, max(0.0, end - time.monotonic())))

    return post


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listening:
        return int(listening.getsockname()[1])


def started(arguments: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL)


def wait_until_answered(port: int, path: str, server: subprocess.Popen[bytes]) -> None:
    async def once() -> bool:
        try:
            return (await Connection(port).ask("GET", path))[0] == 200
        except (OSError, EOFError):
            return False

    end = time.monotonic() + FIRST_ANSWER
    while not asyncio.run(once()):
        if time.monotonic() > end or server.poll() is not None:
            raise SystemExit("the server does not answer")
        time.sleep(0.2)


def memory_mb(process: int) -> float:
    """Resident memory now."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(
    server: subprocess.Popen[bytes], port: int, path: str, users: int, seconds: float, user: User
) -> Figures:
    try:
        wait_until_answered(port, path, server)
        before = memory_mb(server.pid)
        began = time.monotonic()
        figures = asyncio.run(load(port, users, seconds, user))
        took = time.monotonic() - began
        after = memory_mb(server.pid)
        alive = server.poll() is None
    finally:
        server.terminate()
        server.wait(30)
    print(
        f"{users} users for {seconds:g} s, all answered after {took:.0f} s; "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n"
    )
    print("\n".join(figures.lines(took)))
    faults = ", ".join(f"{count} {name}" for name, count in figures.faults.items()) or "none"
    print(f"\nconnections that broke: {faults}; memory {before:,.0f} → {after:,.0f} MB; alive at the end: {alive}")
    return figures


def load_review(users: int, seconds: float) -> None:
    from fewtags.review.decisions import standing

    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        server = started([sys.executable, "-m", "benchmarks.load", "review-server", folder, "--port", str(port)])
        figures = measure(server, port, "/api/setup", users, seconds, reviewer)
        kept = sum(1 for _ in standing(Path(folder) / "completion" / "review.sqlite"))
    confirmed = figures.statuses["answer", 200]
    print(f"answers confirmed {confirmed:,}, in the database {kept:,}")
    if kept < confirmed:
        raise SystemExit("answers were lost")


def serve_review(folder: Path, port: int) -> None:
    """What `fewtags review` does, on made-up suggestions."""
    from rich.console import Console

    from fewtags.review import start
    from fewtags.review.security import Policy
    from tests.review.fabricate import make_review, photo_suggestions

    count = 3000
    place, review = make_review(folder, photo_suggestions(count), count)
    review.decisions.close()
    start.serve(place, "confident", Policy(port=port), False, Console(quiet=True))


def load_serve(source: Path | None, users: int, seconds: float) -> None:
    from benchmarks.serve_throughput import photographs

    with tempfile.TemporaryDirectory() as folder:
        file = source or small_model(Path(folder))
        port = free_port()
        command = [sys.executable, "-m", "fewtags", "serve", str(file), "--port", str(port)]
        measure(started(command), port, "/health", users, seconds, poster(photographs(16)))


def small_model(folder: Path) -> Path:
    """hst on lite0 at 224 pixels, hardly trained: it costs what a good one costs."""
    import fewtags
    from fewtags.export import export_onnx

    run = fewtags.train("scenes:train=64,test=8", out=folder / "run", epochs=1, views=("plain",), device="cpu")
    return export_onnx(run, folder / "tagger.onnx").path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["review", "serve", "review-server"])
    parser.add_argument("source", nargs="?", type=Path)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--port", type=int, default=0)
    asked = parser.parse_args()
    if asked.what == "review-server":
        serve_review(asked.source, asked.port)
    elif asked.what == "review":
        load_review(asked.users, asked.seconds)
    else:
        load_serve(asked.source, asked.users, asked.seconds)


if __name__ == "__main__":
    main()
