"""Blending of category features (SARB): make up features of unknown entries that are known to hold some category.

An unknown entry's feature is blended with one that shows the category: another image's, where it is known present
(instance level), or one of the category's prototypes (prototype level). α of the blend is the image's own, so the
category is present to the degree 1 - α: a soft target. α and β learn, through the features and through the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewtags.batch import Batch
from fewtags.losses.partial_bce import Normalization, normalized
from fewtags.processes.together import (
    all_batch_rows,
    all_rows,
    all_rows_with_gradient,
    from_first,
    own_rows,
    random_rows,
    size,
    total,
)
from fewtags.recipe import Recipe
from fewtags.transfer.prototypes import InstanceBank, Prototypes, filled_slots


def blend(own: Tensor, other: Tensor, share: Tensor, where: Tensor) -> Tensor:
    """Own (B, C, ...), other of that shape or broadcast to it, α, where (B, C) bool → α·own + (1 - α)·other there.

    Elsewhere own, as it is.
    """
    mask = where.reshape(*where.shape, *(1 for _ in own.shape[2:]))
    return torch.where(mask, share * own + (1 - share) * other, own)


def soft_targets(labels: Tensor, share: Tensor, where: Tensor) -> Tensor:
    """Labels (B, C) of -1, 0, +1, α, where (B, C) bool → probabilities: 1 - α where blended, else (y + 1) / 2."""
    return torch.where(where, 1 - share, (labels + 1) / 2)


def blended_loss(
    logits: Tensor,
    labels: Tensor,
    share: Tensor,
    where: Tensor,
    normalization: Normalization = "batch",
    weights: Tensor | None = None,
) -> Tensor:
    """Logits of blended features (B, C), labels, α, where and weights (B, C) → ℓ over known and blended entries.

    Σ w·[-t log σ(x) - (1 - t) log σ(-x)] with t = `soft_targets`, divided as ℓ is; a blended entry has weight 1.
    The target has a gradient too: ∂/∂α of a blended entry's loss holds x beside what comes through the features.
    """
    known = (labels != 0).to(logits.dtype)
    weights = torch.where(where, 1.0, known if weights is None else known * weights)
    # Masked before the loss: a non-finite logit at an unused entry must not reach the gradient.
    logits = logits.masked_fill(weights == 0, 0)
    losses = functional.binary_cross_entropy_with_logits(
        logits, soft_targets(labels, share, where).to(logits.dtype), reduction="none"
    )
    return normalized(losses, weights, normalization)


def taken_from_partners(labels: Tensor, partners: Tensor) -> Tensor:
    """Labels (B, C), each image's partner (B,) → (B, C) bool: unknown here, known present there."""
    return (labels == 0) & (labels[partners] == 1)


def draw_partners(images: int) -> Tensor:
    """(B,): each image's partner, along one random circle through all: never itself, if there is another."""
    circle = from_first(torch.randperm(images))
    partners = torch.empty_like(circle)
    partners[circle] = circle.roll(1)
    return partners


def draw_one(eligible: Tensor) -> Tensor:
    """Eligible (R, S) bool → (R,): one of each row's, all equally likely; 0 in a row without any."""
    return random_rows(*eligible.shape).to(eligible.device).masked_fill(~eligible, -1).argmax(1)


class Network(Protocol):
    """What turns category features (B, C, D), and the logits from beside the graph (B, C), into logits (B, C)."""

    def logits(self, features: Tensor, beside: Tensor) -> Tensor: ...


class Blending(nn.Module):
    """α and β as sigmoids, so that they stay in [0, 1]; and the prototypes, unless the method has its own."""

    typical_beside: Tensor
    """(C,): what the shortcut (and SA's classifier) says on average where the category is known present. A
    prototype comes from no one image, so this stands for its shortcut."""

    def __init__(self, recipe: Recipe, categories: int, own_prototypes: bool = True):
        super().__init__()
        self.recipe = recipe
        self.instance_logit = nn.Parameter(torch.zeros(()), requires_grad=recipe.blend_instances)
        self.prototype_logit = nn.Parameter(torch.zeros(()), requires_grad=recipe.blend_prototypes)
        self.prototypes = (
            Prototypes(categories, recipe.feature_size, recipe.prototypes) if own_prototypes else None
        )
        self.register_buffer("typical_beside", torch.zeros(categories))

    @property
    def instance_share(self) -> Tensor:
        """α"""
        return torch.sigmoid(self.instance_logit)

    @property
    def prototype_share(self) -> Tensor:
        """β"""
        return torch.sigmoid(self.prototype_logit)

    def forward(
        self,
        network: Network,
        outputs: dict[str, Tensor],
        batch: Batch,
        references: Sequence[Prototypes | InstanceBank] = (),
    ) -> dict[str, Tensor]:
        """Outputs with "features" (B, C, D) and "beside" (B, C) → loss terms by name.

        `references`: prototypes of the method's own, if this module was made without any.
        """
        references = [self.prototypes] if self.prototypes is not None else references
        terms = {}
        if self.recipe.blend_instances:
            terms["blend_instance"] = self._instance_loss(network, outputs, batch)
        if self.recipe.blend_prototypes:
            terms["blend_prototype"] = self._prototype_loss(network, outputs, batch, references)
        return terms

    def _instance_loss(self, network: Network, outputs: dict[str, Tensor], batch: Batch) -> Tensor:
        """Partners are images of the whole batch, also when this process has B of them only."""
        images = len(batch.labels)
        partners = draw_partners(size() * images).to(batch.labels.device)
        where = own_rows(taken_from_partners(all_batch_rows(batch.labels), partners), images)
        own_partners = own_rows(partners, images)
        features, beside = (all_rows_with_gradient(outputs[name])[own_partners] for name in ("features", "beside"))
        return self._loss(network, outputs, batch, (features, beside), self.instance_share, where)

    def _prototype_loss(
        self,
        network: Network,
        outputs: dict[str, Tensor],
        batch: Batch,
        references: Sequence[Prototypes | InstanceBank],
    ) -> Tensor:
        """One random unknown category of each image that has prototypes, and one of them."""
        vectors = torch.cat([reference.vectors for reference in references], dim=1)  # (C, K, D)
        filled = torch.cat([filled_slots(part.vectors, part.counts) for part in references], dim=1)  # (C, K)
        eligible = (batch.labels == 0) & filled.any(1)
        category = draw_one(eligible)  # (B,)
        where = eligible & (torch.arange(eligible.shape[1], device=category.device) == category.unsqueeze(1))
        chosen = vectors[category, draw_one(filled[category])]  # (B, D)
        own = outputs["features"].detach()[torch.arange(len(category), device=category.device), category]
        # Prototypes are directions. With the image's own length, a blend is neither dwarfed nor drowned by one.
        other = (own.norm(dim=1, keepdim=True) * chosen).unsqueeze(1), self.typical_beside[category].unsqueeze(1)
        return self._loss(network, outputs, batch, other, self.prototype_share, where)

    def _loss(
        self,
        network: Network,
        outputs: dict[str, Tensor],
        batch: Batch,
        other: tuple[Tensor, Tensor],
        share: Tensor,
        where: Tensor,
    ) -> Tensor:
        """The shortcut is linear in the pooled map, so blending its logits is blending the maps: were it left as
        it is, it would learn the soft target from an image that may not hold the category at all."""
        features = blend(outputs["features"], other[0], share, where)
        beside = blend(outputs["beside"], other[1], share, where)
        logits = network.logits(features, beside)
        normalization = self.recipe.known_normalization
        return blended_loss(logits, batch.targets, share, where, normalization, batch.weights)

    def idle_terms(self) -> dict[str, Tensor]:
        """Before there is anything to blend: zeros with a graph, as DDP needs a gradient of every parameter.

        None with one process, where Adam would count steps that are none.
        """
        if size() == 1:
            return {}
        both = {"instance": self.instance_logit, "prototype": self.prototype_logit}
        return {f"blend_{name}": 0 * logit for name, logit in both.items() if logit.requires_grad}

    def loss_weights(self) -> dict[str, float]:
        return {"blend_instance": self.recipe.blend_weight, "blend_prototype": self.recipe.blend_weight}

    @torch.no_grad()
    def status(self) -> dict[str, float]:
        return {"blend/instances": float(self.instance_share), "blend/prototypes": float(self.prototype_share)}

    def start_walk(self) -> None:
        self.present: list[tuple[Tensor, Tensor]] = []
        self.sums = torch.zeros(2, len(self.typical_beside), device=self.typical_beside.device)

    @torch.no_grad()
    def look(self, batch: Batch, outputs: dict[str, Tensor], adjacency: Tensor) -> None:
        """Remember the features of known present entries, and what is beside the graph there."""
        present = batch.labels == 1
        self.sums += torch.stack([(outputs["beside"] * present).sum(0), present.sum(0)])
        if self.prototypes is not None:
            self.present.append((outputs["features"][present], present.nonzero()[:, 1]))

    @torch.no_grad()
    def finish_walk(self, epoch: int) -> None:
        """New prototypes from all known present features."""
        beside, present = total(self.sums)
        self.typical_beside.copy_(beside / present.clamp(min=1))
        if self.prototypes is not None:
            features, category = (all_rows(torch.cat(parts)) for parts in zip(*self.present, strict=True))
            self.prototypes.update(features, category, self.recipe.prototype_metric, self.recipe.seed + epoch)
        del self.present, self.sums
