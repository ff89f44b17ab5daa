"""hst: ssgrl, and two ways in which known labels fill unknown ones while training (SPEC 1-6).

Within an image, labels that go together (`intra`); across images, likeness to known ones of a category (`cross`).
Both decide by thresholds that learn themselves from the known labels. Ours, not the paper's: a linear layer beside
the network which sees known labels alone (`plain`); with a frozen backbone it has learned before the first epoch,
and a discriminant of the categories' mean images has a share in its scores. Its surest entries are filled too
(`own`), and what is transferred has to be `plausible` to it. With a frozen backbone a second discriminant, filled
labels among those it is made of, has a share in the network's scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.methods.base import Batches, Moment, ParameterGroup, Setting, Step
from fewtags.methods.ssgrl import Ssgrl, shortcut_apart, without
from fewtags.nn.classifier import pooled_classifier
from fewtags.transfer import plain_first
from fewtags.transfer.cross_transfer import CrossTransfer
from fewtags.transfer.discriminant import Discriminants
from fewtags.transfer.intra_transfer import IntraTransfer
from fewtags.transfer.own_transfer import OwnTransfer
from fewtags.transfer.part import Transferred
from fewtags.transfer.walk import Walker, renewal_due, walk


class Hst(Ssgrl):
    summary = "ssgrl, with unknown labels filled by co-occurrence and by likeness while it trains"
    not_read = frozenset()

    def __init__(self, setting: Setting):
        super().__init__(setting)
        recipe, categories = setting.recipe, len(setting.categories)
        self.intra = IntraTransfer(recipe, setting.labels) if recipe.intra else None
        self.plain_first = recipe.plain_beside and bool(recipe.freeze_backbone)
        self.plain = pooled_classifier(recipe, setting.channels, setting.labels) if recipe.plain_beside else None
        if self.plain is not None:
            self.plain.requires_grad_(not self.plain_first)
        self.discriminants = None
        if self.plain_first and recipe.discriminant_share:
            classes = setting.classes if recipe.discriminant_classes else None
            share = recipe.discriminant_share
            self.discriminants = Discriminants(setting.channels, categories, classes, share)
        by_likeness = self.discriminants is not None and recipe.cross_evidence == "images"
        self.cross = CrossTransfer(recipe, categories, by_likeness) if recipe.cross else None
        follows = not self.plain_first
        self.own = OwnTransfer(recipe.own_share, setting.labels, follows) if recipe.own_share else None
        self.plausible = None
        if self.plain is not None and recipe.plausible_share:
            self.plausible = OwnTransfer(recipe.plausible_share, setting.labels, follows)
        self.images = len(setting.labels)
        for transfer in self.transfers.values():
            transfer.threshold.count_positives(setting.labels)

    @property
    def transfers(self) -> dict[str, IntraTransfer | CrossTransfer]:
        both = {"intra": self.intra, "cross": self.cross}
        return {name: module for name, module in both.items() if module is not None}

    @property
    def modules_with_proposals(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.transfers) + (() if self.own is None else ("own",))

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        """What `ssgrl` gives, and

        - "plain" (B, C): scores of what learns from known labels alone;
        - "network" (B, C): what is trained; in "logits" the discriminant has its share;
        - "likeness" (B, C): to a category's known images, from 0 to 1; NaN if it has none. With discriminants;
        - "compared" (B, P): by what an image is like another. With discriminants.
        """
        outputs = super().forward(maps)
        outputs["network"] = outputs["logits"]
        if self.plain is not None:
            outputs["plain"] = self.plain(maps.detach())
        if self.discriminants is not None:
            found = self.discriminants(maps.detach(), outputs["plain"], outputs["network"])
            outputs |= zip(("plain", "logits", "likeness", "compared"), found, strict=True)
        return outputs

    def before_training(self, batches: Callable[[], Iterable[Batch]]) -> None:
        """With a frozen backbone the layer learns first, and says which own labels are filled from then on."""
        if self.plain is None or not self.plain_first:
            return
        describe = None if self.discriminants is None else self.discriminants.description.roots
        seen = plain_first.pooled(batches(), self.images, describe)
        plain_first.learn(self.plain, seen, self.recipe)
        scores, choose = self.plain.of_pooled(seen.maps), partial(self._choose_own, seen.labels)
        if self.discriminants is None or seen.described is None:
            choose(scores)
            return
        likeness = self.discriminants.learn(seen.described, seen.labels, scores, choose)
        if self.cross is not None and self.cross.by_likeness:
            self.cross.learn_likeness(likeness, seen.labels)

    def _choose_own(self, labels: Tensor, scores: Tensor) -> Tensor:
        """By labels and scores (n, C) of the training images: where own labels are filled, (n, C) bool."""
        if self.plausible is not None:
            self.plausible.set_cuts(scores, labels)
        if self.own is None:
            return torch.zeros_like(labels, dtype=torch.bool)
        self.own.set_cuts(scores, labels)
        return self.own.passing(scores, labels)

    def losses(self, outputs: dict[str, Tensor], batch: Batch, moment: Moment) -> Step:
        """The network learns by itself: a discriminant that helped it to a score would leave it less to learn."""
        logits = outputs["network"]
        step = Step({"known": self.classification(logits, batch)})
        if self.plain is not None and not self.plain_first:
            step.terms["plain"] = self.classification(outputs["plain"], batch)
        taken = torch.zeros_like(batch.labels, dtype=torch.bool)
        plausible = ~taken if self.plausible is None else self.plausible(outputs["plain"], batch)
        for transfer in self.transfers.values():
            transfer.threshold.start_epoch(moment.epoch)
        for name, part in self.transferred(outputs, batch).items():
            proposed = part.proposed if moment.epoch >= self.recipe.warmup_epochs else torch.zeros_like(taken)
            proposed = proposed & plausible & ~taken  # an entry labelled by both modules counts once
            taken = taken | proposed
            step.proposals[name] = proposed
            step.terms[name] = part.loss
            if part.threshold_loss is not None:
                step.terms[f"threshold_{name}"] = part.threshold_loss
            step.terms[f"pseudo_{name}"] = self.pseudo_loss(logits, batch, proposed)
        if self.own is not None:
            scores = logits if self.plain is None else outputs["plain"]
            sure = self.plain_first or moment.epoch >= self.recipe.warmup_epochs
            proposed = self.own(scores, batch) & ~taken & sure
            step.proposals["own"] = proposed
            step.terms["pseudo_own"] = self.pseudo_loss(logits, batch, proposed)
        return step

    def transferred(self, outputs: dict[str, Tensor], batch: Batch) -> dict[str, Transferred]:
        """What each module makes of a batch."""
        features, found = outputs["features"], {}
        if self.intra is not None:
            found["intra"] = self.intra(features, batch, self.tagger.adjacency)
        if self.cross is not None:
            found["cross"] = self.cross(features, batch, outputs.get("likeness"))
        return found

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
            for group in shortcut_apart(self, self.tagger.shortcut, self.plain)
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
