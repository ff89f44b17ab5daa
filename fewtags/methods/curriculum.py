"""curriculum (CL): train, label the unknown entries that look sure, train on, and again (Durand et al. 2019).

The network and the loss are those of `partial_bce`; g(p) takes p from known and completed labels together. After
each round all unknown entries are decided anew; weights and schedule go on.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.losses.proportional_bce import proportional_bce
from fewtags.methods.base import Batches, Moment, Setting, Step
from fewtags.methods.plain import Plain
from fewtags.nn.classifier import pooled_classifier
from fewtags.processes.together import all_rows
from fewtags.transfer import curriculum as strategies


class Curriculum(Plain):
    summary = "partial_bce in rounds, between which it labels the unknown entries it is sure of, present or absent"
    modules_with_proposals = ("own",)

    of_images: ClassVar = ("completed",)
    completed: Tensor
    """(images, C) int8: labels given between rounds, 0 where known or undecided. Empty once training is over."""
    folds: Tensor
    """(images, C) of 0, 1: which of the two classifiers an entry teaches, with `agreement`."""
    counts: Tensor
    """(2,): how many absent and present labels the last round gave."""

    def __init__(self, setting: Setting):
        super().__init__(setting)
        recipe, labels = setting.recipe, setting.labels
        self.second = None
        if recipe.curriculum_strategy == "agreement":
            self.second = pooled_classifier(setting.recipe, setting.channels, setting.labels)
        draw = torch.Generator().manual_seed(recipe.seed)
        folds = torch.randint(0, 2, labels.shape, generator=draw, dtype=torch.int8)
        self.register_buffer("folds", folds, persistent=False)  # the seed makes it again
        self.register_buffer("completed", torch.zeros(labels.shape, dtype=torch.int8))
        self.register_buffer("counts", torch.zeros(2))
        self.ends = strategies.round_ends(recipe.epochs, recipe.curriculum_rounds)

    def forward(self, maps: Tensor) -> dict[str, Tensor]:
        outputs = super().forward(maps)
        if self.second is None:
            return outputs
        first, second = outputs["logits"], self.second(maps)
        return {"logits": (first + second) / 2, "first": first, "second": second}

    def losses(self, outputs: dict[str, Tensor], batch: Batch, moment: Moment) -> Step:
        completed = self.completed[batch.image_index]
        targets = torch.where(completed != 0, completed.to(batch.targets), batch.targets)
        weights = None if batch.weights is None else torch.where(completed != 0, 1.0, batch.weights)
        loss = proportional_bce(self._taught(outputs, batch), targets, weights)
        return Step({"completed": loss}, {"own": completed == 1})

    def _taught(self, outputs: dict[str, Tensor], batch: Batch) -> Tensor:
        """(B, C): of two classifiers, each entry is read, and so taught, by the one of its fold."""
        if self.second is None:
            return outputs["logits"]
        return torch.where(self.folds[batch.image_index] == 0, outputs["first"], outputs["second"])

    def wants_walk(self, epoch: int) -> bool:
        return epoch + 1 in (*self.ends, self.recipe.epochs)

    @torch.no_grad()
    def after_epoch(self, epoch: int, batches: Batches) -> None:
        """Label anew at the end of a round. At the end of training a model need not carry labels: forget them."""
        if epoch + 1 == self.recipe.epochs:
            self.completed = self.completed[:0]
            return
        share = self.recipe.curriculum_share * (self.ends.index(epoch + 1) + 1) / len(self.ends)
        rows, labels, logits = _walked(batches)
        decided = strategies.only_unknown(self._decide(logits, labels, share), labels)
        self.completed[rows] = decided
        self.counts.copy_(torch.stack([(decided == -1).sum(), (decided == 1).sum()]))

    def _decide(self, logits: dict[str, Tensor], labels: Tensor, share: float) -> Tensor:
        threshold = self.recipe.curriculum_threshold
        match self.recipe.curriculum_strategy:
            case "threshold":
                return strategies.by_threshold(logits["logits"], threshold)
            case "positives":
                return strategies.by_positives(logits["logits"], threshold)
            case "proportion":
                return strategies.by_proportion(logits["logits"], labels == 0, share)
            case "agreement":
                return strategies.by_agreement(logits["first"], logits["second"], threshold)

    def status(self) -> dict[str, float]:
        absents, presents = self.counts.tolist()
        return {"curriculum/absents": absents, "curriculum/presents": presents}

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """A trained model comes without completed labels, a checkpoint with as many rows as there are images."""
        saved = state_dict.get(f"{prefix}completed")
        if saved is not None and not len(saved):
            self.completed = self.completed[:0]
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _walked(batches: Batches) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Rows (n,), labels (n, C) and the method's outputs, each (n, C), of all training images."""
    walked = [(batch.image_index, batch.labels, outputs) for batch, outputs in batches()]
    rows, labels, outputs = zip(*walked, strict=True)
    logits = {name: all_rows(torch.cat([each[name] for each in outputs])) for name in outputs[0]}
    return all_rows(torch.cat(rows)), all_rows(torch.cat(labels)), logits
