"""Graph convolution over categories: an adjacency of few, weighted edges, and two layers on it (SPEC 9)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewtags.nn.classifier import SMALL_START
from fewtags.nn.dropout import Dropout

SLOPE = 0.2
"""Of the LeakyReLU between the two layers."""


def convolution_adjacency(graph: Tensor, edge_threshold: float, edge_weight: float) -> Tensor:
    """A (C, C), A_ij = P(j | i) → the matrix Â (C, C) that a graph convolution multiplies with."""
    edges = (graph >= edge_threshold).to(graph.dtype).fill_diagonal_(0)
    return symmetrically_normalised(reweighted(edges, edge_weight))


def reweighted(edges: Tensor, edge_weight: float) -> Tensor:
    """Edges (C, C) of 0, 1 → p·edges_ij / Σ_{j≠i} edges_ij for i ≠ j, 1 - p for i = j, with p = `edge_weight`.

    Without it, a category with many neighbours would drown in them, and all would grow alike.
    """
    neighbours = edges.sum(1, keepdim=True)  # (C, 1)
    own = torch.full_like(neighbours, 1 - edge_weight)
    if edge_weight == 1:
        own[neighbours == 0] = 1.0  # with neither edges nor itself, a category would have nothing at all
    return edge_weight * edges / neighbours.clamp(min=1) + torch.diag(own.squeeze(1))


def symmetrically_normalised(weights: Tensor) -> Tensor:
    """W (C, C) → D^-½ W D^-½, D_ii = Σ_j W_ij > 0."""
    scale = weights.sum(1).rsqrt()
    return scale.unsqueeze(1) * weights * scale


class GraphConvolutions(nn.Module):
    """Two layers: states H (..., C, size) and Â (C, C) → Â dropout(LeakyReLU(Â H W₁)) W₂, (..., C, out).

    There are no biases, as published: what tells categories apart is their states alone.
    """

    def __init__(self, size: int, hidden: int, out: int, dropout: float = 0.0):
        super().__init__()
        self.first = nn.Linear(size, hidden, bias=False)
        self.second = nn.Linear(hidden, out, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor, adjacency: Tensor) -> Tensor:
        hidden = functional.leaky_relu(adjacency @ self.first(states), SLOPE)  # (..., C, hidden)
        return adjacency @ self.second(self.dropout(hidden))

    @torch.no_grad()
    def start_small(self) -> None:
        """Scale what comes out down, so that a shortcut beside it leads at first."""
        self.second.weight.mul_(SMALL_START)
