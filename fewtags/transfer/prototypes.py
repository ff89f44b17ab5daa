"""What is remembered of known features: prototypes, SST's instance bank, the contrast queue (SPEC 4)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from fewtags.losses.contrastive import contrastive, unit
from fewtags.processes.together import all_batch_rows, all_rows_with_gradient, size
from fewtags.transfer.clustering import Metric, category_prototypes

Similarity = Literal["mean", "max"]


class Prototypes(nn.Module):
    """K unit prototypes per category (fewer where positives are few), saved with the model."""

    vectors: Tensor
    """(C, K, D) unit rows, zero where unfilled."""
    counts: Tensor
    """(C,) prototypes of each category."""

    def __init__(self, categories: int, size: int, count: int = 10):
        super().__init__()
        self.register_buffer("vectors", torch.zeros(categories, count, size))
        self.register_buffer("counts", torch.zeros(categories, dtype=torch.long))

    @property
    def available(self) -> Tensor:
        """(C,) bool: categories with a prototype."""
        return self.counts > 0

    @torch.no_grad()
    def update(self, features: Tensor, category: Tensor, metric: Metric = "spherical", seed: int = 0) -> None:
        """Known present features (M, D) of these categories (M,) → new prototypes."""
        categories, count = self.vectors.shape[:2]
        vectors, counts = category_prototypes(features, category, categories, count, metric, seed)
        self.vectors.copy_(vectors)
        self.counts.copy_(counts)

    def similarity(self, features: Tensor, kind: Similarity = "mean") -> Tensor:
        """Features (B, C, D) → (B, C): mean or largest cosine(f_c, p_c^k) over k; 0 without prototypes."""
        return category_similarity(features, self.vectors, self.counts, kind)

    def similarity_of(self, features: Tensor, category: Tensor, kind: Similarity = "mean") -> Tensor:
        """The same for single features (M, D) of these categories (M,) → (M,)."""
        return entry_similarity(features, category, self.vectors, self.counts, kind)


class InstanceBank(nn.Module):
    """SST's bank: the newest known present features of each category, in a ring."""

    ring: Tensor
    counts: Tensor
    next_slot: Tensor

    def __init__(self, categories: int, size: int, capacity: int = 100):
        super().__init__()
        self.register_buffer("ring", torch.zeros(categories, capacity + 1, size))
        self.register_buffer("counts", torch.zeros(categories, dtype=torch.long))
        self.register_buffer("next_slot", torch.zeros(categories, dtype=torch.long))

    @property
    def vectors(self) -> Tensor:
        """(C, capacity, D) unit rows, zero where unfilled."""
        return self.ring[:, :-1]

    @property
    def available(self) -> Tensor:
        """(C,) bool: categories with a feature in the bank."""
        return self.counts > 0

    @torch.no_grad()
    def push(self, features: Tensor, labels: Tensor) -> None:
        """Features (B, C, D), labels (B, C): the known present ones replace the oldest."""
        push_into_ring(self.ring, self.next_slot, self.counts, features, labels == 1)

    def similarity(self, features: Tensor, kind: Similarity = "mean") -> Tensor:
        """Features (B, C, D) → (B, C): mean (or largest) cosine over the filled slots; 0 without any."""
        return category_similarity(features, self.vectors, self.counts, kind)

    def similarity_of(self, features: Tensor, category: Tensor, kind: Similarity = "mean") -> Tensor:
        return entry_similarity(features, category, self.vectors, self.counts, kind)


class ContrastQueue(nn.Module):
    """Recent known features per category, half of the slots for present ones and half for absent ones."""

    present: Tensor
    absent: Tensor
    present_counts: Tensor
    absent_counts: Tensor
    present_slot: Tensor
    absent_slot: Tensor

    def __init__(self, categories: int, size: int, total: int = 4096):
        super().__init__()
        capacity = total // categories
        for name, slots in (("present", (capacity + 1) // 2), ("absent", capacity // 2)):
            self.register_buffer(name, torch.zeros(categories, slots + 1, size))
            self.register_buffer(f"{name}_counts", torch.zeros(categories, dtype=torch.long))
            self.register_buffer(f"{name}_slot", torch.zeros(categories, dtype=torch.long))

    @torch.no_grad()
    def push(self, features: Tensor, labels: Tensor) -> None:
        """Features (B, C, D), labels (B, C): known ones replace the oldest of their kind."""
        push_into_ring(self.present, self.present_slot, self.present_counts, features, labels == 1)
        push_into_ring(self.absent, self.absent_slot, self.absent_counts, features, labels == -1)

    def partners(self) -> tuple[Tensor, Tensor]:
        """Unit vectors (C, Q, D), and their labels (C, Q): +1, -1, or 0 in an empty slot."""
        present, absent = self.present[:, :-1], self.absent[:, :-1]
        labels = [
            filled_slots(present, self.present_counts).float(),
            -filled_slots(absent, self.absent_counts).float(),
        ]
        return torch.cat([present, absent], dim=1), torch.cat(labels, dim=1)


def queued_contrast(
    features: Tensor,
    labels: Tensor,
    queue: ContrastQueue | None,
    absent_pairs: Literal["ignore", "include"] = "ignore",
    remember: bool = True,
) -> Tensor:
    """Features (B, C, D), labels (B, C) → L_cst with the queue's features as partners; then they join it.

    Pairs are those of the whole batch, also when this process has B images of it only; all queues stay equal.
    """
    whole = all_rows_with_gradient(features), all_batch_rows(labels)
    partners, partner_labels = queue.partners() if queue is not None else (None, None)
    known = features, labels, partners, partner_labels
    loss = contrastive(*known, absent_pairs, whole if size() > 1 else None)
    if queue is not None and remember:
        queue.push(whole[0].detach(), whole[1])
    return loss


def make_queue(categories: int, size: int, total: int) -> ContrastQueue | None:
    return ContrastQueue(categories, size, total) if total else None


def push_into_ring(ring: Tensor, next_slot: Tensor, counts: Tensor, features: Tensor, chosen: Tensor) -> None:
    """Write the chosen (B, C) of features (B, C, D), as unit vectors, into ring (C, S + 1, D), in place.

    `next_slot` (C,) is where the next goes, `counts` (C,) how many slots are filled. Shapes do not depend on
    what is chosen, so a GPU is never waited for: the others go to the last slot, which is emptied again.
    """
    categories, slots = len(ring), ring.shape[1] - 1
    if slots == 0:
        return
    rank = chosen.long().cumsum(0) - 1  # (B, C): the how-manieth chosen of its category
    pushed = chosen.sum(0)  # (C,)
    kept = chosen & (rank >= pushed - slots)  # of more than fit, the newest: no slot is written twice
    slot = torch.where(kept, (next_slot + rank) % slots, slots)
    ring[torch.arange(categories, device=ring.device).expand_as(slot), slot] = unit(features).to(ring.dtype)
    ring[:, slots] = 0
    next_slot.copy_((next_slot + pushed) % slots)
    counts.copy_((counts + pushed).clamp(max=slots))


def category_similarity(features: Tensor, vectors: Tensor, counts: Tensor, kind: Similarity) -> Tensor:
    """Features (B, C, D), unit vectors (C, K, D) of which counts (C,) are filled → (B, C)."""
    own = unit(features)
    if kind == "mean":
        return (own * _mean_direction(vectors, counts)).sum(-1)
    cosines = torch.einsum("bcd,ckd->bck", own, vectors)
    return _largest(cosines, filled_slots(vectors, counts))


def entry_similarity(
    features: Tensor, category: Tensor, vectors: Tensor, counts: Tensor, kind: Similarity
) -> Tensor:
    """Features (M, D) of categories (M,), unit vectors (C, K, D) → (M,)."""
    own = unit(features)
    if kind == "mean":
        return (own * _mean_direction(vectors, counts)[category]).sum(-1)
    cosines = torch.stack([(own * vectors[category, k]).sum(-1) for k in range(vectors.shape[1])], dim=-1)
    return _largest(cosines, filled_slots(vectors, counts)[category])


def _mean_direction(vectors: Tensor, counts: Tensor) -> Tensor:
    """(C, D): a cosine is linear in the unit feature, so the mean of K cosines is one dot product with this."""
    return vectors.sum(1) / counts.clamp(min=1).unsqueeze(1)


def _largest(cosines: Tensor, filled: Tensor) -> Tensor:
    """Cosines (..., K), filled (..., K) → (...): the largest over filled slots; 0 where none is."""
    largest = cosines.masked_fill(~filled, -torch.inf).amax(-1)
    return largest.masked_fill(~filled.any(-1), 0)


def filled_slots(vectors: Tensor, counts: Tensor) -> Tensor:
    """(C, S) bool: slots that hold something."""
    return torch.arange(vectors.shape[1], device=counts.device) < counts.unsqueeze(1)
