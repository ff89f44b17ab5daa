"""assume_absent: plain, with every unknown label taken as absent. What most tools do without saying so."""

from __future__ import annotations

from fewtags.methods.plain import Plain


class AssumeAbsent(Plain):
    summary = "plain, every unknown label taken as absent: what most tools do"
    settings = {"assume_absent": 1.0}  # noqa: RUF012
