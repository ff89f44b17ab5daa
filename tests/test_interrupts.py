"""Ctrl-C is not lost, even where Python drops the exception that it raises."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from fewtags import interrupts
from tests.conftest import obey_ctrl_c


def test_nobody_is_stopped_who_was_not_asked_to():
    interrupts.insist()


def test_an_interrupt_that_was_dropped_is_raised_again(monkeypatch: pytest.MonkeyPatch):
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(interrupts, "_asked", False)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupts.stop_in_order(signal.SIGINT, None)
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(KeyboardInterrupt):
        interrupts.insist()


def test_python_drops_what_is_raised_while_an_object_is_deleted():
    """Why `insist` is there: the program goes on after its first Ctrl-C."""
    program = (
        "import os, signal\n"
        "from fewtags import interrupts\n"
        "interrupts.listen()\n"
        "class Deleted:\n"
        "    def __del__(self): os.kill(os.getpid(), signal.SIGINT); sum(range(10))\n"
        "Deleted()\n"
        "print('went on', flush=True)\n"
        "interrupts.insist()\n"
        "print('and on')\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=obey_ctrl_c)
    assert done.stdout == "went on\n"
    assert "KeyboardInterrupt" in done.stderr
