"""`fewtags serve RUN_OR_FILE`: open the model, take the port, serve until told to stop."""

from __future__ import annotations

import ipaddress
import math
import socket
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from fewtags.errors import UserError
from fewtags.serve.limits import Limits

GRACE = 5
"""Seconds after which a request that has not arrived in time, and was told so, loses its connection."""


def serve(
    source: Path,
    host: str,
    port: int,
    limits: Limits,
    *,
    token: str | None,
    device: str,
    threads: int | None,
    console: Console,
    without_token: bool = False,
) -> None:
    check_installed()
    import uvicorn

    from fewtags.serve.app import create_app
    from fewtags.serve.models import open_model
    from fewtags.slow_clients import MOST_CONNECTIONS, protocol_with_deadline

    check_token(token)
    check_closed(host, token, without_token)
    listening = taken_port(host, port)  # before the model is loaded: the commonest mistake is the quickest to tell
    with listening:
        model = open_model(source, device, threads)
        for line in opening_lines(source, listening, host, token):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
        config = uvicorn.Config(
            create_app(model, limits, token, is_loopback(host)),
            http=protocol_with_deadline(limits.timeout + GRACE),
            limit_concurrency=MOST_CONNECTIONS,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=math.ceil(2 * limits.timeout),
        )
        uvicorn.Server(config).run(sockets=[listening])


def check_installed() -> None:
    needed = {"fastapi": "fastapi", "uvicorn": "uvicorn", "python_multipart": "python-multipart"}
    missing = [package for module, package in needed.items() if find_spec(module) is None]
    if missing:
        raise UserError(f"serving needs {', '.join(missing)}: pip install 'fewtags[serve]'")


def check_token(token: str | None) -> None:
    if token is not None and (not token.isascii() or not token.strip() or token != token.strip()):
        raise UserError("--token: it is empty, begins or ends with a space, or has letters beyond ASCII")


def check_closed(host: str, token: str | None, without_token: bool) -> None:
    """Others may ask only if somebody wanted that."""
    if token is None and not without_token and not is_loopback(host):
        raise UserError(
            f"--host {host}: others can reach this address, so it needs a secret: --token (or FEWTAGS_TOKEN); "
            "--without-token if anyone may use it"
        )


def taken_port(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as problem:
        raise UserError(f"{host} port {port} cannot be used ({problem}); choose another with --port") from problem


def opening_lines(source: Path, listening: socket.socket, host: str, token: str | None) -> list[str]:
    shown = f"[{host}]" if ":" in host else host
    lines = [f"Serving {source} at http://{shown}:{listening.getsockname()[1]}  (stop with Ctrl-C)"]
    if token is None and not is_loopback(host):
        lines.append(f"Anyone who reaches {host} can use it: there is no --token.")
    return lines


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
