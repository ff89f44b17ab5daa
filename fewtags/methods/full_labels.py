"""full_labels: the network of ssgrl and hst with nothing hidden. The upper bound of every table."""

from __future__ import annotations

from fewtags.methods.ssgrl import Ssgrl


class FullLabels(Ssgrl):
    summary = "the network of ssgrl and hst with nothing hidden: the upper bound"
    settings = {"known": 1.0}  # noqa: RUF012
