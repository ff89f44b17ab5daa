"""Ctrl-C, twice: the first stops in order and says how to go on; the second ends at once.

Either is safe. Files are whole at any moment, so that what the second one leaves can be resumed like the first's.
"""

from __future__ import annotations

import signal
from types import FrameType

_asked = False


def listen() -> None:
    """For a command line. Where Ctrl-C is ignored already (nohup, a background job), it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop_in_order)


def stop_in_order(number: int, frame: FrameType | None) -> None:
    global _asked
    _asked = True
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the system then ends the process, whatever it is doing
    raise KeyboardInterrupt


def insist() -> None:
    """Stop now if that was asked for before: Python drops what is raised while an object is deleted."""
    if _asked:
        raise KeyboardInterrupt
