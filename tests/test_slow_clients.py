"""Clients that send a byte now and then, over real sockets: they lose their connection, others are served."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from fewtags.review import security
from fewtags.serve.app import create_app
from fewtags.serve.limits import Limits
from fewtags.slow_clients import protocol_with_deadline
from tests.review.fabricate import make_app, make_review
from tests.serve.fabricate import ColourModel, picture

DEADLINE = 0.6


@contextmanager
def listening(app: object, seconds: float = DEADLINE, **settings: object) -> Iterator[int]:
    """The app on a free port of this machine."""
    config = uvicorn.Config(app, log_level="critical", http=protocol_with_deadline(seconds), **settings)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(10)


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    head = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


def trickle(connection: socket.socket, pieces: Iterator[bytes], pause: float = 0.05) -> float:
    """Send piece after piece until the other end closes; the seconds that took."""
    started = time.monotonic()
    connection.settimeout(0.01)
    for piece in pieces:
        try:
            connection.sendall(piece)
            if connection.recv(4096) == b"":
                break
        except TimeoutError:
            pass
        except OSError:
            break
        if time.monotonic() - started > 8:
            break
        time.sleep(pause)
    return time.monotonic() - started


def endless(first: bytes, piece: bytes) -> Iterator[bytes]:
    yield first
    while True:
        yield piece


SLOW = {
    "says nothing": (b"", b""),
    "header by header": (b"POST / HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n"),
    "byte by byte of a header": (b"POST / HTTP/1.1\r\nX-Long: ", b"a"),
    "byte by byte of a body": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", b"a"),
    "chunk by chunk": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    "after a whole request": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n", b"X-A: b\r\n"),
}


@pytest.mark.parametrize("how", SLOW)
def test_a_request_that_does_not_arrive_loses_its_connection(how: str):
    with listening(hello) as port, socket.create_connection(("127.0.0.1", port)) as slow:
        took = trickle(slow, endless(*SLOW[how]))
    assert 0.5 * DEADLINE < took < 5


def ask(port: int, body: bytes = b"", connection: socket.socket | None = None) -> bytes:
    with connection or socket.create_connection(("127.0.0.1", port)) as own:
        own.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
        )
        own.settimeout(5)
        answer = b""
        while piece := own.recv(65536):
            answer += piece
    return answer


def test_everybody_else_is_served_meanwhile():
    with listening(hello, 30) as port:
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(150)]
        for connection in slow:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n")
        started = time.monotonic()
        for _ in range(20):
            assert ask(port, b"hi").endswith(b"\r\n\r\nhi")
        assert time.monotonic() - started < 5
        for connection in slow:
            connection.close()


def test_a_connection_that_is_kept_open_between_requests_is_not_slow():
    with listening(hello, DEADLINE) as port, socket.create_connection(("127.0.0.1", port)) as kept:
        for _ in range(3):
            kept.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert kept.recv(4096).startswith(b"HTTP/1.1 200")
            time.sleep(0.7 * DEADLINE)


def test_an_answer_may_take_longer_than_the_request(monkeypatch: pytest.MonkeyPatch):
    async def slowly(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await asyncio.sleep(2.5 * DEADLINE)
        await hello(scope, receive, send)

    with listening(slowly) as port:
        assert ask(port, b"hi").endswith(b"hi")


def test_a_large_body_in_time_is_read_whole():
    with listening(hello, 20) as port:
        assert ask(port, bytes(3_000_000)).endswith(bytes(3_000_000))


def test_headers_are_bounded():
    with listening(hello, 20) as port, socket.create_connection(("127.0.0.1", port)) as greedy:
        took = trickle(greedy, endless(b"GET / HTTP/1.1\r\n", b"X-A: " + b"a" * 10_000), pause=0)
    assert took < 8


def test_serve_tells_a_slow_body_first():
    app = create_app(ColourModel(), Limits(timeout=0.5))
    with listening(app, 5.5) as port, socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\nabc")
        slow.settimeout(5)
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")


def test_review_tells_a_slow_body_first(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(security, "SLOWEST_BODY", 0.5)
    place, review = make_review(tmp_path_factory.mktemp("slow"))
    server = listening(make_app(place, review), 5.5, lifespan="off")
    with server as port, socket.create_connection(("127.0.0.1", port)) as slow:
        head = b"POST /api/undo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        slow.sendall(head + b"Content-Length: 999\r\n\r\n{")
        slow.settimeout(5)
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")
    review.decisions.close()


def test_slow_uploads_do_not_take_all_places():
    """Places in the queue are given back when a body has not arrived."""
    app = create_app(ColourModel(), Limits(timeout=0.5, max_queue=4, max_images=4))
    head = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\nabc"
    with listening(app, 5.5) as port:
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
        for connection in slow:
            connection.sendall(head)
        time.sleep(1.0)
        content = picture(9)
        request = b"POST /predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(
            content
        )
        with socket.create_connection(("127.0.0.1", port)) as good:
            good.sendall(request + content)
            good.settimeout(10)
            assert good.recv(4096).startswith(b"HTTP/1.1 200")
        for connection in slow:
            connection.close()
