"""Who may ask a server without a token: programs on this machine, not the pages that its browser happens to show.

- Host: a page of another site whose name suddenly resolves to 127.0.0.1 (DNS rebinding) still sends its own name.
- Sec-Fetch-Site, else Origin: another site may send an image here, but not without saying where from.

With a token neither is needed: a page does not know it. A server that is open to others on purpose answers to any
name. Every answer carries the same strict headers.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fewtags import http_answers
from fewtags.http_answers import respond, with_headers
from fewtags.review.security import LOOPBACK, host_name

HEADERS = http_answers.HEADERS | {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}


def refusal(headers: Headers) -> tuple[int, str] | None:
    """Status and reason, or None: the request may pass."""
    if host_name(headers.get("host", "")) not in LOOPBACK:
        return 421, "this server answers to 127.0.0.1 and localhost; start it with --token to use another name"
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        crossing = site not in ("same-origin", "none")
    else:
        crossing = origin is not None and origin.partition("://")[2] != headers.get("host")
    return (403, "pages of other sites may not ask here; start it with --token") if crossing else None


class Guard:
    """ASGI middleware around everything. `local`: refuse what does not come from this machine's programs."""

    def __init__(self, app: ASGIApp, local: bool):
        self.app, self.local = app, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        hardened = with_headers(send, HEADERS)
        refused = refusal(Headers(scope=scope)) if self.local else None
        if refused is None:
            return await self.app(scope, receive, hardened)
        status, reason = refused
        await respond(hardened, status, {"error": reason})
