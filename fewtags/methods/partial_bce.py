"""partial_bce: plain, with a loss that weighs an image by its known share (Durand et al. 2019)."""

from __future__ import annotations

from torch import Tensor

from fewtags.batch import Batch
from fewtags.losses.proportional_bce import proportional_bce
from fewtags.methods.plain import Plain


class PartialBce(Plain):
    summary = "plain, each label of an image weighted by g(share known): the loss of Durand et al."

    def classification(self, logits: Tensor, batch: Batch) -> Tensor:
        return proportional_bce(logits, batch.targets, batch.weights)
