"""Which categories go together, from partial labels, and the gated graph network over them (SPEC 2)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import betaln
from torch import Tensor, nn

USUAL_SMOOTHING = 20.0
"""s where the labels cannot tell (no category has been seen twice beside another)."""
SMOOTHING_BOUNDS = (1e-2, 1e5)


def conditional_graph(
    labels: np.ndarray | Tensor,
    kind: Literal["smoothed", "released", "identity"] = "smoothed",
    smoothing: float | None = None,
) -> Tensor:
    """Labels (n, C) of -1, 0, +1 → A (C, C) float32, A_ij an estimate of P(j present | i present), A_ii = 0.

    - "smoothed": (n₁₁ + s·b_j) / (n(i = 1, j known) + s), n₁₁ counting images with both known present, b_j
      the base rate of j where it is known, s = `smoothing`, or by marginal likelihood if None;
    - "released": n₁₁ / n(i = 1), whatever is known of j; 0 where i is never known present (there: NaN);
    - "identity": A = I, no coupling between categories (the graph network then sees each category alone).
    """
    values = labels.numpy(force=True) if isinstance(labels, Tensor) else np.asarray(labels)
    if kind == "identity":
        return torch.eye(values.shape[1])
    present = (values == 1).astype(np.float64)
    known = (values != 0).astype(np.float64)
    together = present.T @ present  # (C, C): n₁₁
    if kind == "released":
        graph = together / np.maximum(present.sum(0), 1)[:, None]
    else:
        graph = _smoothed(together, present.T @ known, _base_rates(present, known), smoothing)
    np.fill_diagonal(graph, 0)
    return torch.from_numpy(graph.astype(np.float32))


def _base_rates(present: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(C,): share of present among the known entries; 0 for a category nothing is known of."""
    return present.sum(0) / np.maximum(known.sum(0), 1)


def _smoothed(
    together: np.ndarray, trials: np.ndarray, base_rates: np.ndarray, smoothing: float | None
) -> np.ndarray:
    strength = likeliest_smoothing(together, trials, base_rates) if smoothing is None else smoothing
    return (together + strength * base_rates) / (trials + strength)


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
        return torch.lerp(states, candidate, update_gate)
