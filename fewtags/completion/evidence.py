"""What speaks for an unknown label besides the score: labels known in the image, and likeness to known images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fewtags.losses.contrastive import unit
from fewtags.methods.base import Method
from fewtags.methods.hst import Hst
from fewtags.transfer.cross_transfer import CrossTransfer
from fewtags.transfer.intra import intra_evidence
from fewtags.transfer.intra_transfer import IntraTransfer


class Witnesses(NamedTuple):
    """P known present labels of a batch, and what each says of every category."""

    image: np.ndarray
    """(P,) row of the batch."""
    category: np.ndarray
    """(P,)"""
    likelihood: np.ndarray
    """(P, C): p_ij, how likely i is where this one is known."""


class Seen(NamedTuple):
    """What a batch of B images shows. NaN: no evidence of that kind."""

    logits: np.ndarray
    """(B, C)"""
    plain: np.ndarray
    """(B, C): logits of the linear layer that learned from known labels alone."""
    intra: np.ndarray
    """(B, C): mean p_ij over the known present j ≠ i."""
    cross: np.ndarray
    """(B, C): likeness to a category's known images, or similarity to its prototypes."""
    witnesses: Witnesses
    features: Tensor | None
    """(B, C, D) unit vectors, if the method compares images."""


@torch.no_grad()
def look(method: Method, outputs: dict[str, Tensor], labels: Tensor) -> Seen:
    """The network's outputs and the known labels (B, C) of a batch → what speaks for its unknown entries."""
    logits = outputs["logits"]
    plain = intra = cross = np.full(logits.shape, np.nan, np.float32)
    witnesses, features = _nobody(logits.shape[1]), None
    if "plain" in outputs:
        plain = outputs["plain"].float().cpu().numpy()
    if isinstance(method, Hst) and method.intra is not None:
        likelihood, rows = _likelihoods(method, method.intra, outputs["features"], labels)
        found, available = intra_evidence(likelihood, *rows, labels, "mean")
        intra = _or_nan(found, available)
        witnesses = Witnesses(rows[0].cpu().numpy(), rows[1].cpu().numpy(), likelihood.cpu().numpy())
    if isinstance(method, Hst) and method.cross is not None:
        features = _compared(method.cross, outputs)
        cross = _cross(method, outputs)
    return Seen(logits.float().cpu().numpy(), plain, intra, cross, witnesses, features)


def _nobody(categories: int) -> Witnesses:
    return Witnesses(np.zeros(0, int), np.zeros(0, int), np.zeros((0, categories), np.float32))


def _or_nan(values: Tensor, available: Tensor) -> np.ndarray:
    return torch.where(available, values, torch.nan).float().cpu().numpy()


def _likelihoods(
    method: Hst, intra: IntraTransfer, features: Tensor, labels: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """(P, C) p_ij, the mean over the heads of cross-fitting, and the rows (image, j)."""
    images, given = torch.nonzero(labels == 1, as_tuple=True)
    rest = images, given, labels, method.tagger.adjacency
    if intra.recipe.intra_source == "statistical":
        return intra.shares(*rest), (images, given)
    heads = [torch.sigmoid(intra.pair_logits(fold, features, *rest)) for fold in range(len(intra.heads))]
    return torch.stack(heads).mean(0), (images, given)


def _compared(cross: CrossTransfer, outputs: dict[str, Tensor]) -> Tensor:
    """(B, C, D) unit vectors: what the evidence across images compares with a category's known images."""
    if not cross.by_likeness:
        return unit(outputs["features"])
    categories = outputs["likeness"].shape[1]
    return unit(outputs["compared"]).unsqueeze(1).expand(-1, categories, -1)


def _cross(method: Hst, outputs: dict[str, Tensor]) -> np.ndarray:
    """(B, C), NaN for a category with nothing to resemble."""
    assert method.cross is not None
    if method.cross.by_likeness:
        return outputs["likeness"].float().cpu().numpy()
    return _or_nan(*_similarity(method, outputs["features"]))


def _similarity(method: Hst, features: Tensor) -> tuple[Tensor, Tensor]:
    """(B, C) mean over the sets of prototypes, and (C,) whether a category has any."""
    assert method.cross is not None
    references = method.cross.references
    kind = method.recipe.prototype_similarity
    similarity = torch.stack([part.similarity(features, kind) for part in references]).mean(0)  # type: ignore[operator]
    return similarity, torch.stack([part.available for part in references]).all(0)  # type: ignore[misc]


@torch.no_grad()
def most_similar(features: Tensor, gallery: Tensor, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit features (B, C, D), gallery (C, G, D) of known present ones → (B, C, k) places and cosines.

    Most similar first; a place is -1 where the gallery has fewer. Empty slots of the gallery are zero vectors.
    """
    empty = (gallery == 0).all(-1)  # (C, G)
    cosines = torch.einsum("bcd,cgd->bcg", features, gallery).masked_fill(empty, -torch.inf)
    best = cosines.topk(min(count, gallery.shape[1]), dim=-1)
    places = torch.where(torch.isinf(best.values), -1, best.indices)
    return places.int().cpu().numpy(), best.values.half().cpu().numpy()
