"""Intra-image transfer (IST, SPEC 3): what is known to be present in an image vouches for what goes with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewtags.batch import Batch
from fewtags.recipe import Recipe
from fewtags.transfer.intra import PairHead, intra_evidence, pair_loss, pair_rows, pair_targets
from fewtags.transfer.part import Transferred, crossfitted, threshold_labels, threshold_loss
from fewtags.transfer.thresholds import LearnedThreshold, pseudo_labels


class IntraTransfer(nn.Module):
    """One pair head (two with cross-fitting) and the threshold on the evidence that it gives."""

    def __init__(self, recipe: Recipe, categories: int):
        super().__init__()
        self.recipe = recipe
        heads = 2 if recipe.threshold_labels == "crossfit" else 1
        self.heads = nn.ModuleList(self._head(categories) for _ in range(heads))
        self.threshold = LearnedThreshold(
            categories,
            recipe.threshold_of("intra"),
            recipe.threshold_target,
            maximum=1.0 if recipe.evidence == "mean" else None,
            style=recipe.thresholds,
        )

    def _head(self, categories: int) -> PairHead:
        recipe = self.recipe
        return PairHead(
            recipe.feature_size,
            categories,
            recipe.pair_size,
            recipe.pair_hidden,
            recipe.pair_layers,
            recipe.pair_scores,
        )

    def forward(self, features: Tensor, batch: Batch, adjacency: Tensor) -> Transferred:
        """Features (B, C, D) → loss, threshold loss and proposals."""
        images, given = self._rows(batch)
        scores = [head(features, images, given) for head in self.heads]  # each (P, C)
        loss = self._loss(scores, batch, images, given)
        found = [self._evidence(self._likelihoods(s, adjacency, given), images, given, batch) for s in scores]
        available = found[0][1]
        evidence, evidence_of_known = crossfitted([values for values, _ in found], batch.folds)
        labels = threshold_labels(batch, available, self.recipe)
        threshold = threshold_loss(self.threshold, evidence_of_known, labels, self.recipe)
        decided = self.threshold.decide(evidence, available)
        return Transferred(loss, threshold, pseudo_labels(batch.labels, decided).bool(), evidence.detach())

    def _rows(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(P,) image and (P,) given category of each row of pairs that is needed."""
        if self.recipe.pair_targets == "conditional":
            return batch.pair_images, batch.pair_given
        return pair_rows(batch.targets, self.recipe.pair_targets)

    def _likelihoods(self, scores: Tensor, adjacency: Tensor, given: Tensor) -> Tensor:
        """(P, C): how likely each category is beside the given one, here or on the average."""
        return adjacency[given] if self.recipe.intra_source == "statistical" else torch.sigmoid(scores)

    def _evidence(self, likelihoods: Tensor, images: Tensor, given: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return intra_evidence(
            likelihoods, images, given, batch.labels, self.recipe.evidence, self.recipe.self_evidence
        )

    def _loss(self, scores: list[Tensor], batch: Batch, images: Tensor, given: Tensor) -> Tensor:
        """L_ist, each head on the pairs of its own fold."""
        recipe = self.recipe
        targets = pair_targets(batch.targets, images, given, recipe.pair_targets)  # (P, C)
        losses = []
        for fold, pair_logits in enumerate(scores):
            own = targets if len(scores) == 1 else torch.where(batch.folds[images] == fold, targets, 0)  # type: ignore[index]
            losses.append(
                pair_loss(
                    pair_logits,
                    own,
                    recipe.pair_loss,
                    recipe.gamma_present,
                    recipe.gamma_absent,
                    recipe.probability_shift,
                )
            )
        return torch.stack(losses).mean()
