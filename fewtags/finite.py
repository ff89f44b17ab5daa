"""Numbers that are none (NaN, infinity) stop the work, with the names of the images they belong to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewtags.errors import UserError

MOST_NAMED = 16


def require_finite(values: np.ndarray, images: Sequence[str], what: str, advice: str) -> None:
    """values (n, ...), one row per image: a UserError that names the images whose row holds anything else.

    A sum is quicker than looking at every number, and as good: it is finite only if all of them are.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if len(bad):
        found = named([images[row] for row in bad.tolist()])
        raise UserError(f"{what} hold values that are not finite numbers (NaN or infinity): {found}; {advice}")


def named(images: Sequence[str]) -> str:
    """`a.jpg, b.jpg and 30 more`"""
    more = f" and {len(images) - MOST_NAMED} more" if len(images) > MOST_NAMED else ""
    return ", ".join(images[:MOST_NAMED]) + more


def require_cached(part: np.ndarray, images: Sequence[str], maps: object) -> None:
    """The same of features that were read: rows `part` of the cache file `maps`."""
    file = getattr(maps, "filename", None) or "the cache"
    require_finite(part, images, "the cached features", f"delete {file} and run it again")
