"""How cost grows with the number of categories: cost ≈ a·C^k, k by least squares on logarithms."""

from __future__ import annotations

import numpy as np
import pandas as pd

LEAST_SIZES = 3
SETTING = ["module", "contender", "batch", "side", "known"]


def exponent(categories: np.ndarray, cost: np.ndarray) -> float:
    """Categories (n,), cost (n,) > 0 → k of cost = a·C^k."""
    slope, _ = np.polyfit(np.log(categories), np.log(cost), deg=1)
    return float(slope)


def growth(summary: pd.DataFrame) -> pd.DataFrame:
    """Rows of `tables.summary` → one per module, contender, batch and map: exponents of time and of memory.

    NaN where fewer than three numbers of categories were measured.
    """
    found = []
    for setting, rows in summary.groupby(SETTING, sort=False):
        found.append(
            {
                **dict(zip(SETTING, setting, strict=True)),
                "categories": len(rows),
                "time": _fitted(rows, "seconds"),
                "memory": _fitted(rows, "peak_bytes"),
            }
        )
    return pd.DataFrame(found, columns=[*SETTING, "categories", "time", "memory"])


def _fitted(rows: pd.DataFrame, cost: str) -> float:
    rows = rows[rows[cost] > 0]
    if rows["categories"].nunique() < LEAST_SIZES:
        return float("nan")
    return exponent(rows["categories"].to_numpy(float), rows[cost].to_numpy(float))
