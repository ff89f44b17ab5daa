"""A request has to arrive whole within a time. uvicorn itself waits for ever for the rest of a header or a body.

Without a limit a few hundred connections that send a byte a minute would keep everybody else out (slowloris).
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 1000
"""At once; beyond, a request is answered with 503."""
ARRIVING = (h11.IDLE, h11.SEND_BODY)


def protocol_with_deadline(seconds: float) -> type[asyncio.Protocol]:
    """uvicorn's HTTP protocol, that closes a connection whose request takes longer than this to arrive."""

    class Deadline(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _watch(self) -> None:
            """Between two requests uvicorn's own limit for idle connections counts, not ours."""
            begun = self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])
            if self.conn.their_state in ARRIVING and begun:
                self._start()
            else:
                self._stop()

        def _start(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(seconds, self.transport.abort)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Deadline
