"""sst: hst's two transfers with a bank of instances for prototypes and a threshold that follows a schedule."""

from __future__ import annotations

from fewtags.methods.hst import Hst


class Sst(Hst):
    summary = "hst's ancestor: a bank of known instances for prototypes, one threshold that falls on schedule"
    # Nothing teaches the threshold, so there is nothing to cross-fit: one pair head and one bank, on all labels.
    settings = {"cross_source": "instances", "thresholds": "falling", "own_share": 0.0, "threshold_labels": "all"}  # noqa: RUF012
