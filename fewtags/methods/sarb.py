"""sarb: ssgrl, trained also on blends of unknown entries' features with features that show the category."""

from __future__ import annotations

from torch import Tensor

from fewtags.batch import Batch
from fewtags.methods.base import Batches, Moment, Setting, Step
from fewtags.methods.ssgrl import Ssgrl
from fewtags.transfer.blending import Blending
from fewtags.transfer.prototypes import make_queue, queued_contrast
from fewtags.transfer.walk import renewal_due, walk


class Sarb(Ssgrl):
    summary = "ssgrl, with unknown entries blended with another image's or a prototype's feature, as soft labels"

    def __init__(self, setting: Setting):
        super().__init__(setting)
        recipe, categories = setting.recipe, len(setting.categories)
        self.blending = Blending(recipe, categories)
        self.queue = make_queue(categories, recipe.feature_size, recipe.contrast_queue)

    def losses(self, outputs: dict[str, Tensor], batch: Batch, moment: Moment) -> Step:
        step = super().losses(outputs, batch, moment)
        recipe, features = self.recipe, outputs["features"]
        step.terms["contrast"] = queued_contrast(
            features, batch.labels, self.queue, recipe.absent_pairs, self.training
        )
        blends = moment.epoch >= recipe.warmup_epochs
        step.terms |= self.blending(self.tagger, outputs, batch) if blends else self.blending.idle_terms()
        return step

    def loss_weights(self, moment: Moment) -> dict[str, float]:
        ramp = min(1.0, moment.progress) if self.recipe.ramp_transfer else 1.0
        return {"contrast": self.recipe.cross_weight * ramp} | self.blending.loss_weights()

    def wants_walk(self, epoch: int) -> bool:
        return renewal_due(self.recipe, epoch)

    def after_epoch(self, epoch: int, batches: Batches) -> None:
        """Prototypes are made anew."""
        walk([self.blending], epoch, batches(), self.tagger.adjacency)

    def status(self) -> dict[str, float]:
        return self.blending.status()
