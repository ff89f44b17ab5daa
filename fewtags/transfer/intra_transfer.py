"""Intra-image transfer (IST, SPEC 3): what is known to be present in an image vouches for what goes with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewtags.batch import Batch
from fewtags.nn.dropout import Dropout
from fewtags.nn.label_graph import PairCounts, count_pairs, shares_without_itself
from fewtags.recipe import Recipe
from fewtags.transfer.intra import Distinct, PairHead, intra_evidence, pair_loss, pair_rows, pair_targets
from fewtags.transfer.part import KnownEvidence, Transferred, crossfitted, teaching_labels, threshold_loss
from fewtags.transfer.thresholds import make_threshold, pseudo_labels

SMALLEST_SHARE = 1e-3
"""Shares of co-occurrence are kept this far from 0 and 1, so that their logits are finite."""


class IntraTransfer(nn.Module):
    """One pair head (two with cross-fitting) and the threshold on the evidence that it gives."""

    def __init__(self, recipe: Recipe, labels: Tensor):
        """`labels` (n, C): the training labels, whose co-occurrence is counted."""
        super().__init__()
        self.recipe = recipe
        categories = labels.shape[1]
        for name, value in count_pairs(labels, recipe.graph_smoothing)._asdict().items():
            self.register_buffer(name, value)
        heads = 2 if recipe.threshold_labels == "crossfit" else 1
        self.heads = nn.ModuleList(self._head(categories) for _ in range(heads))
        self.dropout = Dropout(recipe.dropout)
        maximum = 1.0 if recipe.evidence == "mean" else None
        self.threshold = make_threshold(recipe, "intra", categories, maximum)

    def _head(self, categories: int) -> PairHead:
        recipe = self.recipe
        head = PairHead(
            recipe.feature_size,
            categories,
            recipe.pair_size,
            recipe.pair_hidden,
            recipe.pair_layers,
            recipe.pair_scores,
        )
        if recipe.pair_prior:
            head.start_small()
        return head

    def forward(self, features: Tensor, batch: Batch, adjacency: Tensor) -> Transferred:
        """Features (B, C, D) → loss, threshold loss and proposals."""
        loss = self._loss(features, batch, adjacency)
        evidence, evidence_of_known, available = self.evidence(features, batch, adjacency)
        labels = torch.where(available, teaching_labels(batch, self.recipe), 0)
        threshold = threshold_loss(self.threshold, evidence_of_known, labels)
        decided = self.threshold.decide(evidence, available)
        return Transferred(loss, threshold, pseudo_labels(batch.labels, decided).bool(), evidence.detach())

    def evidence(self, features: Tensor, batch: Batch, adjacency: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, C) each: evidence of unknown entries, of known ones (cross-fitted), and whether there is any."""
        with torch.set_grad_enabled(self.recipe.dtl_gradient == "through" and torch.is_grad_enabled()):
            found = [self._evidence(fold, features, batch, adjacency) for fold in range(len(self.heads))]
        unknown, known = crossfitted([values for values, _ in found], batch.folds)
        return unknown, known, found[0][1]

    def _evidence(self, fold: int, features: Tensor, batch: Batch, adjacency: Tensor) -> tuple[Tensor, Tensor]:
        rows = batch.pair_images, batch.pair_given
        if self.recipe.intra_source == "statistical":
            likelihoods = self.shares(*rows, batch.labels, adjacency)
        else:
            context = (*rows, batch.labels, adjacency, _holders(batch))
            likelihoods = torch.sigmoid(self.pair_logits(fold, features, *context))
        recipe = self.recipe
        return intra_evidence(likelihoods, *rows, batch.labels, recipe.evidence, recipe.self_evidence)

    def shares(self, images: Tensor, given: Tensor, labels: Tensor, adjacency: Tensor) -> Tensor:
        """Rows (P,) of (image, given j), labels (B, C) → (P, C): how often every i goes with j.

        With the smoothed graph, an image's own labels are left out of its counts (`shares_without_itself`).
        """
        if self.recipe.graph != "smoothed":
            return adjacency[given]
        counts = PairCounts(*(getattr(self, name) for name in PairCounts._fields))
        return shares_without_itself(counts, given, labels[images])

    def pair_logits(
        self,
        fold: int,
        features: Tensor,
        images: Tensor,
        given: Tensor,
        labels: Tensor,
        adjacency: Tensor,
        distinct: Distinct | None = None,
    ) -> Tensor:
        """Rows (P,) of (image, given j) → (P, C) logits of p_ij, for every i.

        With `pair_prior` the head says how an image differs from the average: the logit of `shares` is added.
        """
        scores = self.heads[fold](features, images, given, distinct)
        if not self.recipe.pair_prior:
            return scores
        return scores + torch.logit(self.shares(images, given, labels, adjacency), eps=SMALLEST_SHARE)

    def _loss(self, features: Tensor, batch: Batch, adjacency: Tensor) -> Tensor:
        """L_ist, each head on the pairs of its own fold."""
        images, given, distinct = self._rows(batch)
        targets = pair_targets(batch.targets, images, given, self.recipe.pair_targets)  # (P, C)
        losses, context = [], (images, given, batch.labels, adjacency, distinct)
        for fold in range(len(self.heads)):
            scores = self.pair_logits(fold, self.dropout(features), *context)
            losses.append(self._pair_loss(scores, self._of_fold(targets, batch, images, fold)))
        return torch.stack(losses).mean()

    def _rows(self, batch: Batch) -> tuple[Tensor, Tensor, Distinct | None]:
        """(P,) image and (P,) given category of each row of pairs that teaches the head; the distinct images."""
        if self.recipe.pair_targets == "conditional":
            return batch.pair_images, batch.pair_given, _holders(batch)
        images, given = pair_rows(batch.targets, self.recipe.pair_targets)
        every = torch.arange(len(batch.targets), device=images.device)
        return images, given, (every, images) if self.recipe.pair_targets == "released" else None

    def _of_fold(self, targets: Tensor, batch: Batch, images: Tensor, fold: int) -> Tensor:
        return targets if batch.folds is None else torch.where(batch.folds[images] == fold, targets, 0)

    def _pair_loss(self, scores: Tensor, targets: Tensor) -> Tensor:
        recipe = self.recipe
        focus = recipe.gamma_present, recipe.gamma_absent, recipe.probability_shift
        return pair_loss(scores, targets, recipe.pair_loss, *focus)

    def start_walk(self) -> None:
        self.seen = KnownEvidence()

    @torch.no_grad()
    def look(self, batch: Batch, outputs: dict[str, Tensor], adjacency: Tensor) -> None:
        """Remember the evidence of the entries that teach the threshold."""
        _, evidence, available = self.evidence(outputs["features"], batch, adjacency)
        self.seen.add(evidence, torch.where(available, teaching_labels(batch, self.recipe), 0))

    def finish_walk(self, epoch: int) -> None:
        """Refit the threshold to the evidence that the head gives now."""
        self.threshold.fit(*self.seen.entries())


def _holders(batch: Batch) -> Distinct | None:
    """The images with a known present entry, and which of them each entry is in; None if nobody has looked."""
    if batch.pair_holders is None or batch.pair_places is None:
        return None
    return batch.pair_holders, batch.pair_places
