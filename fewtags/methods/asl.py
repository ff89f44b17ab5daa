"""asl: plain, with the asymmetric loss that plays down easy absents (Ridnik et al. 2021)."""

from __future__ import annotations

from torch import Tensor

from fewtags.batch import Batch
from fewtags.losses.asymmetric import asymmetric
from fewtags.losses.partial_bce import entry_weights, normalized
from fewtags.methods.plain import Plain


class Asl(Plain):
    summary = "plain, with the asymmetric loss: easy absents count little, very easy ones nothing"
    # Its loss hardly moves a score that starts low, so it starts undecided.
    settings = {  # noqa: RUF012
        "gamma_present": 0.0,
        "gamma_absent": 4.0,
        "probability_shift": 0.05,
        "first_scores": "undecided",
    }

    def classification(self, logits: Tensor, batch: Batch) -> Tensor:
        focus = self.recipe.gamma_present, self.recipe.gamma_absent, self.recipe.probability_shift
        weights = entry_weights(batch.targets, batch.weights)
        return normalized(asymmetric(logits, batch.targets, *focus), weights, self.recipe.known_normalization)
