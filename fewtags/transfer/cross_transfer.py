"""Cross-image transfer (CST, SPEC 4): an image whose feature resembles a category's prototypes may hold it too."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewtags.batch import Batch
from fewtags.processes.together import all_batch_rows, all_rows, size, smallest
from fewtags.recipe import Recipe
from fewtags.transfer.part import Transferred, crossfitted, teaching_labels, threshold_loss
from fewtags.transfer.prototypes import InstanceBank, Prototypes, make_queue, queued_contrast
from fewtags.transfer.thresholds import make_threshold, pseudo_labels

MOST_REFIT_ENTRIES = 200_000
"""Known entries kept to refit the threshold: a uniform sample, so that base rates stay as they are."""


class CrossTransfer(nn.Module):
    """Prototypes (two sets with cross-fitting), the contrastive loss, and the threshold on the similarity.

    `by_likeness`: the evidence is another one, the likeness of whole images, which is given and never changes.
    """

    def __init__(self, recipe: Recipe, categories: int, by_likeness: bool = False):
        super().__init__()
        self.recipe, self.by_likeness = recipe, by_likeness
        sets = 2 if recipe.threshold_labels == "crossfit" else 1
        self.references = nn.ModuleList(self._reference(categories) for _ in range(sets))
        self.queue = make_queue(categories, recipe.feature_size, recipe.contrast_queue)
        self.threshold = make_threshold(recipe, "cross", categories)
        if by_likeness:
            self.threshold.requires_grad_(False)  # it is fitted once, before training

    def _reference(self, categories: int) -> Prototypes | InstanceBank:
        recipe = self.recipe
        if recipe.cross_source == "instances":
            return InstanceBank(categories, recipe.feature_size, recipe.instance_bank)
        return Prototypes(categories, recipe.feature_size, recipe.prototypes)

    def forward(self, features: Tensor, batch: Batch, likeness: Tensor | None = None) -> Transferred:
        """Features (B, C, D) and, with `by_likeness`, that (B, C), NaN where there is none → loss, threshold loss
        and proposals."""
        loss = self._loss(features, batch)
        if self.by_likeness:
            assert likeness is not None
            decided = self.threshold.decide(likeness.detach(), ~likeness.isnan())
            return Transferred(loss, None, pseudo_labels(batch.labels, decided).bool(), likeness.detach())
        available = self._available().expand_as(batch.labels)
        evidence, evidence_of_known = crossfitted(self._similarities(features), batch.folds)
        labels = torch.where(available, teaching_labels(batch, self.recipe), 0)
        threshold = threshold_loss(self.threshold, evidence_of_known, labels)
        decided = self.threshold.decide(evidence, available)
        return Transferred(loss, threshold, pseudo_labels(batch.labels, decided).bool(), evidence.detach())

    def _available(self) -> Tensor:
        """(C,) bool: categories with something to resemble."""
        return torch.stack([reference.available for reference in self.references]).all(0)  # type: ignore[misc]

    def _similarities(self, features: Tensor) -> list[Tensor]:
        if self.recipe.dtl_gradient == "theta_only":
            features = features.detach()
        return [reference.similarity(features, self.recipe.prototype_similarity) for reference in self.references]  # type: ignore[operator]

    def _loss(self, features: Tensor, batch: Batch) -> Tensor:
        """L_cst; and what this batch knows joins the queue and the instance bank."""
        loss = queued_contrast(features, batch.labels, self.queue, self.recipe.absent_pairs, self.training)
        if self.training:
            self._remember(features.detach(), batch)
        if self.recipe.prototype_contrast:
            loss = loss + self._inverted_prototype_contrast(features, batch.labels)
        return loss

    def _remember(self, features: Tensor, batch: Batch) -> None:
        for fold, reference in enumerate(self.references):
            if isinstance(reference, InstanceBank):
                labels = self._of_fold(batch.labels, batch.folds, fold)
                reference.push(all_batch_rows(features), all_batch_rows(labels))

    def _of_fold(self, labels: Tensor, folds: Tensor | None, fold: int) -> Tensor:
        if len(self.references) == 1 or folds is None:
            return labels
        return torch.where(folds == fold, labels, torch.zeros_like(labels))

    def _inverted_prototype_contrast(self, features: Tensor, labels: Tensor) -> Tensor:
        """Released only: mean of s·y + 1. It pushes present features away from their prototypes: a wrong sign."""
        similarity = self.references[0].similarity(features, "mean")  # type: ignore[operator]
        return (similarity * labels * self._available() + 1).mean()

    def start_walk(self) -> None:
        self.known = _KnownFeatures(self.recipe)

    @torch.no_grad()
    def look(self, batch: Batch, outputs: dict[str, Tensor], adjacency: Tensor) -> None:
        """Remember the features of known entries."""
        self.known.add(batch, outputs["features"])

    @torch.no_grad()
    def finish_walk(self, epoch: int) -> None:
        """New prototypes from all known present features, then the threshold refitted to the new similarities."""
        self.known.gather()
        for fold, reference in enumerate(self.references):
            if isinstance(reference, Prototypes):
                features, category = self.known.positives(fold if len(self.references) > 1 else None)
                reference.update(features, category, self.recipe.prototype_metric, self.recipe.seed + epoch)
        if not self.by_likeness:
            self._refit(self.known)
        del self.known

    def learn_likeness(self, likeness: Tensor, labels: Tensor) -> None:
        """Fit θ to the likeness (n, C) of training images, each to others; NaN: to none. Labels (n, C)."""
        used = (labels != 0) & ~likeness.isnan()
        category = torch.arange(labels.shape[1], device=labels.device).expand_as(labels)
        self.threshold.fit(likeness[used], labels[used], category[used])

    def _refit(self, known: _KnownFeatures) -> None:
        features, category, labels, folds = known.sample()
        scores = [
            reference.similarity_of(features, category, self.recipe.prototype_similarity)  # type: ignore[operator]
            for reference in self.references
        ]
        _, evidence = crossfitted(scores, folds)
        usable = self._available()[category]
        self.threshold.fit(evidence[usable], labels[usable], category[usable])


class _KnownFeatures:
    """Collects features of known entries on a walk over the training images: (M, D), category, label, fold."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        self.present: list[tuple[Tensor, ...]] = []
        self.teaching: list[tuple[Tensor, ...]] = []
        self.share = 1.0
        self.generator = torch.Generator().manual_seed(recipe.seed)

    def add(self, batch: Batch, features: Tensor) -> None:
        folds = batch.folds if batch.folds is not None else torch.zeros_like(batch.labels, dtype=torch.int8)
        image, category = torch.nonzero(batch.labels == 1, as_tuple=True)
        self.present.append((features[image, category], category, folds[image, category]))
        labels = teaching_labels(batch, self.recipe)
        image, category = torch.nonzero(labels, as_tuple=True)
        kept = self._chosen(len(image), self.share, labels.device)
        image, category = image[kept], category[kept]
        entries = features[image, category], category, labels[image, category], folds[image, category]
        self.teaching.append(entries)
        self._thin()

    def _chosen(self, count: int, share: float, device: torch.device) -> Tensor:
        return (torch.rand(count, generator=self.generator) < share).to(device)

    def _thin(self) -> None:
        """Halve the sample when it has grown too large; later entries are then kept half as often too."""
        if sum(len(part[0]) for part in self.teaching) > MOST_REFIT_ENTRIES // size():
            self._keep(self.share / 2)

    def _keep(self, share: float) -> None:
        entries = self.sample()
        kept = self._chosen(len(entries[0]), share / self.share, entries[0].device)
        self.share, self.teaching = share, [tuple(column[kept] for column in entries)]

    def gather(self) -> None:
        """What all processes have collected, each on its part of the walk; the same share of it from each."""
        if size() == 1:
            return
        common = float(smallest(torch.tensor(self.share, device=self.teaching[0][0].device)))
        if common < self.share:
            self._keep(common)
        self.present, self.teaching = (
            [tuple(all_rows(torch.cat(column)) for column in zip(*parts, strict=True))]
            for parts in (self.present, self.teaching)
        )

    def positives(self, fold: int | None) -> tuple[Tensor, Tensor]:
        features, category, folds = (torch.cat(parts) for parts in zip(*self.present, strict=True))
        chosen = slice(None) if fold is None else folds == fold
        return features[chosen], category[chosen]

    def sample(self) -> tuple[Tensor, ...]:
        return tuple(torch.cat(parts) for parts in zip(*self.teaching, strict=True))
