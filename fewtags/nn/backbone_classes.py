"""What a backbone could tell apart before it was given to us."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class BackboneClasses(NamedTuple):
    """The classes that a backbone was trained on, scored by the mean of its map: K linear scores."""

    weight: Tensor
    """(K, channels)"""
    bias: Tensor
    """(K,)"""
