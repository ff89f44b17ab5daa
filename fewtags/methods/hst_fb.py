"""hst_fb: hst and sarb's blending together; both use the same prototypes."""

from __future__ import annotations

from torch import Tensor

from fewtags.batch import Batch
from fewtags.methods.base import Moment, Setting, Step
from fewtags.methods.hst import Hst
from fewtags.transfer.blending import Blending
from fewtags.transfer.walk import Walker


class HstFb(Hst):
    summary = "hst, with sarb's blending of features beside its pseudo labels"

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.blending = Blending(setting.recipe, len(setting.categories), own_prototypes=not setting.recipe.cross)

    def losses(self, outputs: dict[str, Tensor], batch: Batch, moment: Moment) -> Step:
        step = super().losses(outputs, batch, moment)
        if moment.epoch < self.recipe.warmup_epochs:
            step.terms |= self.blending.idle_terms()
        else:
            prototypes = () if self.cross is None else self.cross.references
            step.terms |= self.blending(self.tagger, outputs, batch, prototypes)
        return step

    def loss_weights(self, moment: Moment) -> dict[str, float]:
        return super().loss_weights(moment) | self.blending.loss_weights()

    @property
    def walkers(self) -> list[Walker]:
        return [*super().walkers, self.blending]

    def status(self) -> dict[str, float]:
        return super().status() | self.blending.status()
