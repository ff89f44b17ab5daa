"""Intra-image transfer (IST, SPEC 3): the pair head, its targets and loss, and the evidence it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from fewtags.losses.asymmetric import asymmetric
from fewtags.losses.partial_bce import batch_ratio, partial_bce, safe_ratio

TargetKind = Literal["conditional", "both_known", "three_valued", "released"]
Distinct = tuple[Tensor, Tensor]
"""(b,) images without repeats, and (P,) each row's place among them."""
SMALL_START = 0.1
"""Scale of the first scores when a prior is added to them."""
CPU_BLOCK, GPU_BLOCK = 2**22, 2**26
"""Elements of pair states (rows × categories × hidden) held at once; more are recomputed for the gradient."""


class PairHead(nn.Module):
    """Scores ordered pairs: is i present in this image, given that j is?

    g_i = ReLU(W₁ f_i); h_ij = ReLU(W_a g_i + W_b g_j + b); logit_ij = v · h_ij + c.
    The halves W_a g_i and W_b g_j are computed once per category, never per pair.

    - `layers="released"`: no ReLU after W₁, one more linear layer before v, and a pair scored in one order
      only (the smaller index as i) for both directions;
    - `scores="per_pair"`: an own v and c for each pair.
    """

    def __init__(
        self,
        size: int,
        categories: int,
        pair_size: int = 512,
        pair_hidden: int = 1024,
        layers: Literal["paper", "released"] = "paper",
        scores: Literal["shared", "per_pair"] = "shared",
    ):
        super().__init__()
        self.released = layers == "released"
        self.own_score = scores == "per_pair"
        self.reduce = nn.Linear(size, pair_size)
        self.asked_half = nn.Linear(pair_size, pair_hidden)
        self.given_half = nn.Linear(pair_size, pair_hidden, bias=False)
        self.extra = nn.Linear(pair_hidden, pair_hidden) if self.released else None
        shape = (categories, categories) if self.own_score else ()  # (given, asked)
        bound = pair_hidden**-0.5
        self.score = nn.Parameter(torch.empty(*shape, pair_hidden).uniform_(-bound, bound))
        self.score_bias = nn.Parameter(torch.zeros(shape))

    @torch.no_grad()
    def start_small(self) -> None:
        """Scale the first scores down, so that a prior added to them leads at first."""
        self.score.mul_(SMALL_START)

    @property
    def category_axes(self) -> dict[str, tuple[int, ...]]:
        return {"score": (0, 1), "score_bias": (0, 1)} if self.own_score else {}

    def forward(
        self, features: Tensor, image_index: Tensor, given_index: Tensor, distinct: Distinct | None = None
    ) -> Tensor:
        """Features (B, C, D), rows (P,) of (image, given j) → logits (P, C) of every i.

        `distinct`: the distinct images and each row's place among them, where they are known: looking for them
        makes the host wait for a GPU.
        """
        images, image_row = distinct or torch.unique(image_index, return_inverse=True)
        reduced = self.reduce(features[images])  # (b, C, pair_size): images with at least one row
        if not self.released:
            reduced = torch.relu(reduced)
        asked = self.asked_half(reduced)  # (b, C, hidden)
        if self.released:
            return self._in_blocks(self._mirrored_rows, asked, self.given_half(reduced), image_row, given_index)
        given = self.given_half(reduced[image_row, given_index])  # (P, hidden)
        return self._in_blocks(self._rows, asked, given, image_row, given_index)

    def _in_blocks(
        self,
        rows: Callable[..., Tensor],
        asked: Tensor,
        given: Tensor,
        image_row: Tensor,
        given_index: Tensor,
    ) -> Tensor:
        """Logits (P, C). More than one block of pair states (p, C, hidden) is recomputed for the gradient."""
        elements = CPU_BLOCK if asked.device.type == "cpu" else GPU_BLOCK
        step = max(1, elements // (asked.shape[1] * asked.shape[2]))
        inputs = asked, given, image_row, given_index, *self._scores()
        if len(image_row) <= step:
            return rows(*inputs, slice(None))
        blocks = [slice(start, start + step) for start in range(0, len(image_row), step)]
        parts = [
            checkpoint(rows, *inputs, block, use_reentrant=False, preserve_rng_state=False) for block in blocks
        ]
        return torch.cat(parts)

    def _scores(self) -> tuple[Tensor, Tensor]:
        """v and c: (hidden,) and () if shared, else (C, C, hidden) and (C, C), mirrored when the head is."""
        score: Tensor = self.score
        bias: Tensor = self.score_bias
        if self.extra is not None:
            # v · (X h + x) = (Xᵀ v) · h + v · x: the extra layer is linear, so v takes it, not every pair.
            score, bias = score @ self.extra.weight, bias + score @ self.extra.bias
        if not (self.own_score and self.released):
            return score, bias
        every = torch.arange(len(score), device=score.device)
        larger, smaller = torch.maximum(every.unsqueeze(1), every), torch.minimum(every.unsqueeze(1), every)
        return score[larger, smaller], bias[larger, smaller]

    def _rows(
        self,
        asked: Tensor,
        given: Tensor,
        image_row: Tensor,
        given_index: Tensor,
        score: Tensor,
        bias: Tensor,
        block: slice,
    ) -> Tensor:
        states = torch.relu(asked[image_row[block]] + given[block].unsqueeze(1))  # (p, C, hidden)
        return self._scored(states, given_index[block], score, bias)

    def _mirrored_rows(
        self,
        asked: Tensor,
        given: Tensor,
        image_row: Tensor,
        given_index: Tensor,
        score: Tensor,
        bias: Tensor,
        block: slice,
    ) -> Tensor:
        """As released: for i > j the pair is (j, i), so both directions get one score."""
        image, j = image_row[block], given_index[block]
        smaller = torch.arange(asked.shape[1], device=j.device) < j.unsqueeze(1)  # (p, C): i < j
        in_order = asked[image] + given[image, j].unsqueeze(1)
        swapped = asked[image, j].unsqueeze(1) + given[image]
        states = torch.relu(torch.where(smaller.unsqueeze(2), in_order, swapped))
        return self._scored(states, j, score, bias)

    def _scored(self, states: Tensor, given_index: Tensor, score: Tensor, bias: Tensor) -> Tensor:
        """Pair states (p, C, hidden) → logits (p, C)."""
        if not self.own_score:
            return states @ score + bias
        return (states * score[given_index]).sum(-1) + bias[given_index]


def pair_rows(labels: Tensor, targets_kind: TargetKind = "conditional") -> tuple[Tensor, Tensor]:
    """Labels (B, C) → (P,) images and (P,) given categories j: the rows that targets and evidence need.

    conditional: j known present. both_known: j known. three_valued: any j of an image with a known label.
    released: any j of any image.
    """
    if targets_kind == "conditional":
        needed = labels == 1
    elif targets_kind == "both_known":
        needed = labels != 0
    elif targets_kind == "three_valued":
        needed = (labels != 0).any(1, keepdim=True).expand_as(labels)
    else:
        every = torch.arange(labels.numel(), device=labels.device)
        return every // labels.shape[1], every % labels.shape[1]
    image_index, given_index = torch.nonzero(needed, as_tuple=True)
    return image_index, given_index


def pair_targets(
    labels: Tensor, image_index: Tensor, given_index: Tensor, kind: TargetKind = "conditional"
) -> Tensor:
    """Labels (B, C) and rows (P,) → targets (P, C) of -1, 0, +1 for "i, given j"; 0: unused, always at i = j.

    - conditional: y_i where y_j = +1;
    - both_known: +1 if both are present, -1 if both are known and one is absent;
    - three_valued: min(y_i, y_j), so an absent one decides even if the other is unknown;
    - released: +1 if both are known present, else -1.
    """
    asked = labels[image_index]  # (P, C)
    given = labels[image_index, given_index].unsqueeze(1)  # (P, 1)
    lower = torch.minimum(asked, given)
    if kind == "conditional":
        targets = asked * (given == 1)
    elif kind == "both_known":
        targets = lower * ((asked != 0) & (given != 0))
    elif kind == "three_valued":
        targets = lower
    else:
        targets = torch.where(lower == 1, lower, -torch.ones_like(lower))
    return targets.masked_fill(_is_self(given_index, labels.shape[1]), 0)


def pair_loss(
    pair_logits: Tensor,
    targets: Tensor,
    kind: Literal["asymmetric", "bce"] = "asymmetric",
    gamma_present: float = 1.0,
    gamma_absent: float = 2.0,
    shift: float = 0.05,
) -> Tensor:
    """Logits and targets (P, C) → L_ist, averaged over the pairs used; 0 with a graph if there are none."""
    if kind == "bce":
        return partial_bce(pair_logits, targets, "batch")
    losses = asymmetric(pair_logits, targets, gamma_present, gamma_absent, shift)
    return batch_ratio(losses.sum(), (targets != 0).sum())


def intra_evidence(
    pair_probabilities: Tensor,
    image_index: Tensor,
    given_index: Tensor,
    labels: Tensor,
    kind: Literal["mean", "sum"] = "mean",
    self_evidence: bool = False,
) -> tuple[Tensor, Tensor]:
    """Probabilities p_ij (P, C) of rows (image, j) → evidence (B, C), and whether there is any, bool (B, C).

    evidence_i = mean (or sum) of p_ij over j ≠ i with y_j = +1; `self_evidence` (released): j = i counts as 1.
    """
    counts = (labels[image_index, given_index] == 1).unsqueeze(1).expand_as(pair_probabilities)  # (P, C)
    itself = _is_self(given_index, labels.shape[1])
    if self_evidence:
        pair_probabilities = pair_probabilities.masked_fill(itself, 1)
    else:
        counts = counts & ~itself
    zeros = pair_probabilities.new_zeros(labels.shape)
    total = zeros.index_add(0, image_index, pair_probabilities.masked_fill(~counts, 0))
    witnesses = zeros.index_add(0, image_index, counts.to(zeros.dtype))
    return (safe_ratio(total, witnesses) if kind == "mean" else total), witnesses > 0


def _is_self(given_index: Tensor, categories: int) -> Tensor:
    """(P, C) bool: where the category asked for is the given one."""
    return given_index.unsqueeze(1) == torch.arange(categories, device=given_index.device)
