"""One training step's images and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Batch:
    """One step's images and what is known of them. B images, C categories, P known present entries."""

    inputs: Tensor
    """(B, channels, H, W) feature maps of a frozen backbone, or (B, 3, S, S) images."""
    labels: Tensor
    """(B, C) of -1, 0, +1: what training may know."""
    image_index: Tensor
    """(B,) rows of the training table."""
    targets: Tensor
    """(B, C) `labels`, and -1 where an unknown entry is taken as a weak absent."""
    weights: Tensor | None = None
    """(B, C) weight of each target in the classification loss; None: all 1."""
    held_out: Tensor | None = None
    """(B, C) of -1, 0, +1: known labels kept out of training, for thresholds alone."""
    folds: Tensor | None = None
    """(B, C) of 0, 1: the fold of each entry, for cross-fitting."""
    pair_images: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    """(P,) which image of the batch holds the p-th known present entry."""
    pair_given: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))
    """(P,) which category it is."""
    pair_holders: Tensor | None = None
    """(b,) the images with any, in order, without repeats: from the loader, as a GPU would have to be asked."""
    pair_places: Tensor | None = None
    """(P,) which of `pair_holders` is the image of the p-th."""

    def to(self, device: torch.device) -> Batch:
        moved = {
            name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
            for name, value in vars(self).items()
        }
        return Batch(**moved)
