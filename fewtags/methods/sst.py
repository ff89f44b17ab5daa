"""sst: hst's two transfers with a bank of instances for prototypes and a threshold that follows a schedule."""

from __future__ import annotations

from typing import ClassVar

from fewtags.methods.hst import Hst


class Sst(Hst):
    summary = "hst's ancestor: a bank of known instances for prototypes, one threshold that falls on schedule"
    # Nothing teaches the threshold, so there is nothing to cross-fit: one pair head and one bank, on all labels.
    settings: ClassVar = {
        "cross_source": "instances",
        "thresholds": "falling",
        "threshold_labels": "all",
        "own_share": 0.0,
        "plain_beside": False,
        "discriminant_share": 0.0,
    }
