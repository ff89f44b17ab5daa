"""Which categories go together, from partial labels, and the gated graph network over them (SPEC 2)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import betaln
from torch import Tensor, nn

from fewtags.labels.sparse import SparseLabels, pair_totals

USUAL_SMOOTHING = 20.0
"""s where the labels cannot tell (no category has been seen twice beside another)."""
SMOOTHING_BOUNDS = (1e-2, 1e5)
CLOSED = -4.0
"""Bias of an update gate that lets through 2 %."""


def conditional_graph(
    labels: np.ndarray | Tensor | SparseLabels,
    kind: Literal["smoothed", "released", "identity"] = "smoothed",
    smoothing: float | None = None,
) -> Tensor:
    """Labels (n, C) of -1, 0, +1 → A (C, C) float32, A_ij an estimate of P(j present | i present), A_ii = 0.

    - "smoothed": (n₁₁ + s·b_j) / (n(i = 1, j known) + s), n₁₁ counting images with both known present, b_j
      the base rate of j where it is known, s = `smoothing`, or by marginal likelihood if None;
    - "released": n₁₁ / n(i = 1), whatever is known of j; 0 where i is never known present (there: NaN);
    - "identity": A = I, no coupling between categories (the graph network then sees each category alone).
    """
    if kind == "identity":
        return torch.eye(labels.shape[1])
    counts = count_pairs(labels, smoothing)
    if kind == "released":
        graph = counts.together / counts.present.clamp(min=1).unsqueeze(1)
    else:
        graph = (counts.together + counts.prior) / (counts.trials + counts.smoothing)
    return graph.fill_diagonal_(0)


class PairCounts(NamedTuple):
    """What the known labels say about pairs of categories."""

    together: Tensor
    """(C, C): n₁₁, images in which both are known present."""
    trials: Tensor
    """(C, C): n(i = 1, j known)."""
    present: Tensor
    """(C,): images in which i is known present."""
    prior: Tensor
    """(C,): s·b_j, the base rate's weight in counts."""
    smoothing: Tensor
    """(): s."""


def count_pairs(labels: np.ndarray | Tensor | SparseLabels, smoothing: float | None = None) -> PairCounts:
    """Labels (n, C) → counts over entries that are both known, s by marginal likelihood if None."""
    together, trials, present, known = _totals(labels)
    base_rates = present / np.maximum(known, 1)  # 0 for a category nothing is known of
    strength = likeliest_smoothing(together, trials, base_rates) if smoothing is None else smoothing
    arrays = together, trials, present, strength * base_rates, np.array(strength)
    return PairCounts(*(torch.from_numpy(array.astype(np.float32)) for array in arrays))


def _totals(labels: np.ndarray | Tensor | SparseLabels) -> tuple[np.ndarray, ...]:
    """n₁₁ and n(i = 1, j known), (C, C) each; images with i known present, and known, (C,) each."""
    if isinstance(labels, SparseLabels):
        present_count, absent_count = (labels.count_by_category(value).astype(np.float64) for value in (1, -1))
        return *pair_totals(labels), present_count, present_count + absent_count
    values = labels.numpy(force=True) if isinstance(labels, Tensor) else np.asarray(labels)
    present, known = (values == 1).astype(np.float64), (values != 0).astype(np.float64)
    return present.T @ present, present.T @ known, present.sum(0), known.sum(0)


def shares_without_itself(counts: PairCounts, given: Tensor, labels: Tensor) -> Tensor:
    """Rows (P,) of given categories j, the labels (P, C) of their images → (P, C): P(i | j) for every i.

    As the smoothed graph, but the image's own known label of i is taken out of the counts: without that, a label
    would vouch for itself, and a threshold learned on known labels would come out too low for unknown ones.
    """
    together = counts.together[given] - (labels == 1).to(counts.together.dtype)
    trials = counts.trials[given] - (labels != 0).to(counts.trials.dtype)
    return (together + counts.prior) / (trials + counts.smoothing)


def likeliest_smoothing(together: np.ndarray, trials: np.ndarray, base_rates: np.ndarray) -> float:
    """n₁₁ (C, C), n(i = 1, j known) (C, C), b (C,) → the s of the greatest marginal likelihood.

    n₁₁ is beta-binomial: P(j | i) ~ Beta(s·b_j, s·(1 - b_j)), independently over ordered pairs i ≠ j.
    """
    rates = np.broadcast_to(base_rates, together.shape)
    # A single trial has the same probability under every s; a rate of 0 or 1 leaves nothing to vary.
    tells = (trials > 1) & (rates > 0) & (rates < 1) & ~np.eye(len(together), dtype=bool)
    if not tells.any():
        return USUAL_SMOOTHING
    hits, misses, rate = together[tells], (trials - together)[tells], rates[tells]

    def surprise(log_strength: float) -> float:
        alpha, beta = np.exp(log_strength) * rate, np.exp(log_strength) * (1 - rate)
        return -float((betaln(hits + alpha, misses + beta) - betaln(alpha, beta)).sum())

    return float(np.exp(minimize_scalar(surprise, bounds=np.log(SMOOTHING_BOUNDS), method="bounded").x))


class GatedGraph(nn.Module):
    """Gated graph network: states h (B, C, D) and adjacency A (C, C) → states after `steps` steps.

    a = [A h, Aᵀ h]; z = σ(W_z a + U_z h); r = σ(W_r a + U_r h); candidate = tanh(W a + U (r ⊙ h));
    h ← (1 - z) ⊙ h + z ⊙ candidate. The steps share their weights. 9·C·D² multiply-adds a step and image.
    """

    def __init__(self, size: int, steps: int = 3):
        super().__init__()
        self.steps = steps
        self.from_message = nn.Linear(2 * size, 3 * size)  # update gate, reset gate, candidate at once
        self.gates_from_state = nn.Linear(size, 2 * size, bias=False)
        self.candidate_from_state = nn.Linear(size, size, bias=False)

    def forward(self, states: Tensor, adjacency: Tensor) -> Tensor:
        for _ in range(self.steps):
            states = self._step(states, adjacency.to(states.dtype))
        return states

    def _step(self, states: Tensor, adjacency: Tensor) -> Tensor:
        message = torch.cat([adjacency @ states, adjacency.T @ states], dim=-1)  # (B, C, 2D)
        update_in, reset_in, candidate_in = self.from_message(message).chunk(3, dim=-1)
        update_own, reset_own = self.gates_from_state(states).chunk(2, dim=-1)
        update_gate = torch.sigmoid(update_in + update_own)
        reset_gate = torch.sigmoid(reset_in + reset_own)
        candidate = torch.tanh(candidate_in + self.candidate_from_state(reset_gate * states))
        # Under autocast the layers give bfloat16 also for float32 states, and lerp mixes no types.
        return torch.lerp(states, candidate.to(states.dtype), update_gate.to(states.dtype))

    @torch.no_grad()
    def start_closed(self) -> None:
        """Let states through nearly as they are at first; training opens the update gates as far as it helps."""
        self.from_message.bias.chunk(3)[0].fill_(CLOSED)
