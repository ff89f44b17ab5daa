"""Rows of results.csv as they might have been measured."""

from __future__ import annotations

import pandas as pd


def row(
    module="heads", contender="ours", categories=80, batch=8, side=7, seconds=1.0, gigabytes=0.5, **more
) -> dict:
    return {
        "module": module,
        "contender": contender,
        "categories": categories,
        "batch": batch,
        "side": side,
        "known": 0.5,
        "scale": "paper",
        "round": 1,
        "status": "ok",
        "seconds": seconds,
        "peak_bytes": None if gigabytes is None else gigabytes * 1e9,
        "loss": 1.5,
        "steps": 3,
        "threads": 2,
        **more,
    }


def rows(*given: dict) -> pd.DataFrame:
    return pd.DataFrame(list(given))


def too_large(**settings) -> dict:
    return row(seconds=None, gigabytes=None, status="does not fit", loss=None, steps=0, **settings)
