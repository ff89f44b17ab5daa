"""Who may ask, and from where. The page shows private images and writes labels, so it is closed by default.

- Host: a page of another site whose name suddenly resolves to 127.0.0.1 (DNS rebinding) still sends its own name.
- Origin and Sec-Fetch-Site: another site may send a form here, but not without saying where from.
- Token: anybody who is not on this machine has to know it; compared in constant time, kept
  in a cookie, never logged.
- Bodies are small and arrive in time, and every answer carries the same strict headers.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import socket
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fewtags import http_answers
from fewtags.errors import UserError
from fewtags.http_answers import respond, with_headers

LARGEST_BODY = 64 * 1024
SLOWEST_BODY = 10
"""Seconds for a body to arrive."""
SHORTEST_TOKEN = 16
TOKEN = re.compile(rf"[A-Za-z0-9_-]{{{SHORTEST_TOKEN},}}")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
READING = ("GET", "HEAD")
HEADERS = http_answers.HEADERS | {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class RefusedError(Exception):
    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Policy:
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and self.token is None:
            raise UserError(
                f"--host {self.host}: others can reach this address, so it needs a secret: "
                f"--token followed by {SHORTEST_TOKEN} characters or more that nobody can guess"
            )
        if self.token is not None and not TOKEN.fullmatch(self.token):
            raise UserError(
                f"--token: use {SHORTEST_TOKEN} or more letters, digits, - and _, so that nobody can guess it"
            )

    @property
    def cookie(self) -> str:
        """Cookies are shared by all ports of a host."""
        return f"fewtags_review_{self.port}"

    def check_host(self, headers: Headers) -> None:
        name = host_name(headers.get("host", ""))
        if is_loopback(self.host):
            allowed = name in LOOPBACK
        else:  # an address cannot be rebound, a name can
            allowed = _is_address(name) or name in (*LOOPBACK, self.host.lower(), socket.gethostname().lower())
        if not allowed:
            raise RefusedError(421, "This server does not answer to that name.")

    def check_origin(self, method: str, headers: Headers) -> None:
        site = headers.get("sec-fetch-site")
        if method in READING:
            if site == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
                raise RefusedError(403, "Another site may not read from here.")
            return
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers.get("host"):
            raise RefusedError(403, "Another site may not write here.")
        if site not in (None, "same-origin", "none"):
            raise RefusedError(403, "Another site may not write here.")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise RefusedError(415, "Send JSON, with the content type application/json.")

    def is_token(self, given: str | None) -> bool:
        if self.token is None:
            return True
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def check_token(self, headers: Headers) -> None:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = bearer if scheme.lower() == "bearer" else _cookie(headers.get("cookie", ""), self.cookie)
        if not self.is_token(given):
            raise RefusedError(401, "Open the address with ?token= that `fewtags review` printed.")


class Guard:
    """ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, policy: Policy):
        self.app, self.policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        hardened = with_headers(send, HEADERS)
        try:
            await self._answer(scope, receive, hardened)
        except RefusedError as refusal:
            await respond(hardened, refusal.status, {"detail": str(refusal)})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, method = Headers(scope=scope), scope["method"]
        self.policy.check_host(headers)
        self.policy.check_origin(method, headers)
        if self.policy.token is not None and method in READING and b"token=" in scope["query_string"]:
            return await self._let_in(scope, send)
        self.policy.check_token(headers)
        try:
            body = await asyncio.wait_for(_whole_body(headers, receive), SLOWEST_BODY)
        except TimeoutError as problem:
            raise RefusedError(408, f"The request has not arrived within {SLOWEST_BODY} s.") from problem
        await self.app(scope, _replayed(body, receive), send)

    async def _let_in(self, scope: Scope, send: Send) -> None:
        """?token= becomes a cookie, and leaves the address bar."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not self.policy.is_token(given):
            raise RefusedError(401, "That is not the token.")
        cookie = f"{self.policy.cookie}={given}; HttpOnly; SameSite=Lax; Path=/"
        await respond(send, 303, {"detail": "welcome"}, {"location": "/", "set-cookie": cookie})


def is_loopback(host: str) -> bool:
    return host.lower() in LOOPBACK or (_is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback)


def host_name(header: str) -> str:
    """`[::1]:8765` → `::1`, `Localhost:80` → `localhost`"""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0].lower()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _cookie(header: str, name: str) -> str | None:
    try:
        morsel = SimpleCookie(header).get(name)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


async def _whole_body(headers: Headers, receive: Receive) -> bytes:
    """Read here, up to the limit, whatever the headers claim."""
    too_large = RefusedError(413, f"At most {LARGEST_BODY // 1024} kB.")
    claimed = headers.get("content-length", "0")
    if not claimed.isdecimal() or int(claimed) > LARGEST_BODY:
        raise too_large
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LARGEST_BODY:
            raise too_large
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
