"""plain_pl: plain, and after warm-up its own confident predictions as present labels: a cheap, strong rival."""

from __future__ import annotations

import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.methods.base import Method, Moment, Step
from fewtags.methods.plain import Plain
from fewtags.transfer.own_predictions import own_predictions


class OwnPredictions(Method):
    """Adds ℓ(y ∪ ŷ) to whatever it is mixed into, as hst does; ŷ is what the step's own logits are sure of."""

    modules_with_proposals = ("own",)

    def losses(self, outputs: dict[str, Tensor], batch: Batch, moment: Moment) -> Step:
        step, logits = super().losses(outputs, batch, moment), outputs["logits"]
        proposed = torch.zeros_like(batch.labels, dtype=torch.bool)
        if moment.epoch >= self.recipe.warmup_epochs:
            proposed = own_predictions(logits, batch.labels, self.recipe.confidence)
        step.proposals["own"] = proposed
        step.terms["pseudo_own"] = self.pseudo_loss(logits, batch, proposed)
        return step


class PlainPl(OwnPredictions, Plain):
    summary = "plain, with its own confident predictions as present labels after warm-up"
