"""What the answers of `review` and `serve` have in common: strict headers, and JSON sent without a framework."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer of either server."""


def with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    """`send` that sets these headers on every answer, and keeps it out of caches unless it says otherwise."""

    async def hardened(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = MutableHeaders(scope=message)
            for name, value in headers.items():
                own[name] = value
            own.setdefault("Cache-Control", "no-store")
        await send(message)

    return hardened


async def respond(send: Send, status: int, content: dict[str, str], extra: dict[str, str] | None = None) -> None:
    body = json.dumps(content).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **(extra or {})}
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
