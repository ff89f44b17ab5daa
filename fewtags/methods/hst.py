"""hst: ssgrl, and two ways in which known labels fill unknown ones while training (SPEC 1-6).

Within an image, labels that go together (`intra`); across images, likeness to a category's prototypes (`cross`).
Both decide by thresholds that learn themselves from the known labels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.methods.base import Batches, Method, Moment, ParameterGroup, Setting, Step
from fewtags.methods.ssgrl import Ssgrl, without
from fewtags.transfer.cross_transfer import CrossTransfer
from fewtags.transfer.intra_transfer import IntraTransfer
from fewtags.transfer.own_transfer import OwnTransfer
from fewtags.transfer.walk import Walker, renewal_due, walk


class Hst(Ssgrl):
    summary = "ssgrl, with unknown labels filled by co-occurrence and by prototypes while it trains"

    def __init__(self, setting: Setting):
        super().__init__(setting)
        recipe, categories = setting.recipe, len(setting.categories)
        self.intra = IntraTransfer(recipe, setting.labels) if recipe.intra else None
        self.cross = CrossTransfer(recipe, categories) if recipe.cross else None
        self.own = OwnTransfer(recipe.own_share, setting.labels) if recipe.own_share else None
        for transfer in self.transfers.values():
            transfer.threshold.count_positives(setting.labels)

    @property
    def transfers(self) -> dict[str, IntraTransfer | CrossTransfer]:
        both = {"intra": self.intra, "cross": self.cross}
        return {name: module for name, module in both.items() if module is not None}

    @property
    def modules_with_proposals(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.transfers) + (() if self.own is None else ("own",))

    def losses(self, outputs: dict[str, Tensor], batch: Batch, moment: Moment) -> Step:
        step = Method.losses(self, outputs, batch, moment)
        taken = torch.zeros_like(batch.labels, dtype=torch.bool)
        for name, transfer in self.transfers.items():
            transfer.threshold.start_epoch(moment.epoch)
            part = transfer(outputs["features"], batch, self.tagger.adjacency)
            proposed = part.proposed if moment.epoch >= self.recipe.warmup_epochs else torch.zeros_like(taken)
            proposed = proposed & ~taken  # an entry labelled by both modules counts once
            taken = taken | proposed
            step.proposals[name] = proposed
            step.terms[name] = part.loss
            if part.threshold_loss is not None:
                step.terms[f"threshold_{name}"] = part.threshold_loss
            step.terms[f"pseudo_{name}"] = self.pseudo_loss(outputs["logits"], batch, proposed)
        if self.own is not None:
            proposed = self.own(outputs["logits"], batch) & ~taken & (moment.epoch >= self.recipe.warmup_epochs)
            step.proposals["own"] = proposed
            step.terms["pseudo_own"] = self.pseudo_loss(outputs["logits"], batch, proposed)
        return step

    def loss_weights(self, moment: Moment) -> dict[str, float]:
        recipe = self.recipe
        ramp = min(1.0, moment.progress) if recipe.ramp_transfer else 1.0
        return {
            "intra": recipe.intra_weight * ramp,
            "cross": recipe.cross_weight * ramp,
            "threshold_intra": recipe.threshold_weight,
            "threshold_cross": recipe.threshold_weight,
        }

    def parameter_groups(self) -> list[ParameterGroup]:
        thresholds = [p for transfer in self.transfers.values() for p in transfer.threshold.parameters()]
        groups = [
            ParameterGroup(group.name, without(group.parameters, thresholds), group.lr)
            for group in super().parameter_groups()
        ]
        drag = self.recipe.thresholds == "released"
        lr = self.recipe.head_lr if drag else self.recipe.threshold_lr
        return [*groups, ParameterGroup("thresholds", thresholds, lr, decay=drag, scheduled=False)]

    @property
    def walkers(self) -> list[Walker]:
        """What all training images renew: not a bank of instances, nor a threshold that nothing teaches."""
        taught = self.recipe.thresholds != "falling"
        prototypes = self.recipe.cross_source == "prototypes"
        return [part for name, part in self.transfers.items() if taught or (name == "cross" and prototypes)]

    def wants_walk(self, epoch: int) -> bool:
        return bool(self.walkers) and renewal_due(self.recipe, epoch)

    def after_epoch(self, epoch: int, batches: Batches) -> None:
        """Prototypes are made anew, and thresholds refitted, before the next pseudo label is made."""
        walk(self.walkers, epoch, batches(), self.tagger.adjacency)

    def after_step(self) -> None:
        for transfer in self.transfers.values():
            transfer.threshold.clamp_()

    def status(self) -> dict[str, float]:
        return {
            f"threshold/{name}": float(transfer.threshold.value().mean())
            for name, transfer in self.transfers.items()
        }
