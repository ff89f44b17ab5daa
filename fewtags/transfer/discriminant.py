"""A linear discriminant of each category: which way its images lie from all others (Fisher, 1936).

Where a category's images lie, its few present labels say, known and filled ones. How features vary together, which
is most of what a classifier has to learn, all training images say, whatever is known of their labels.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fewtags.nn.classifier import PooledClassifier

RIDGE = 3.0
"""Added to every direction's variance, in mean variances: directions that hardly vary are not to be trusted."""


@torch.no_grad()
def set_discriminant(layer: PooledClassifier, maps: Tensor, present: Tensor, scores: Tensor) -> None:
    """Weights w_c = (Σ + RIDGE · mean variance · I)⁻¹ (mean of c's images - mean of all), scaled.

    Maps (n, channels) of training images; present (n, C) bool; scores (n, C) of a classifier: over these images
    the layer's scores get the same mean and spread, so that the two can be mixed. A category that is nowhere
    present has the same score everywhere.
    """
    mean = maps.mean(0)
    x, shown = maps - mean, present.to(maps)
    covariance = x.T @ x / len(x)  # (channels, channels)
    smallest = torch.finfo(x.dtype).tiny
    covariance.diagonal().add_((RIDGE * covariance.diagonal().mean()).clamp(min=smallest))
    towards = shown.T @ x / shown.sum(0).clamp(min=1).unsqueeze(1)  # (C, channels)
    weight = torch.linalg.solve(covariance, towards.T).T  # (C, channels)
    spread = (x @ weight.T).std(0, correction=0)
    scale = torch.where(spread > 0, scores.std(0, correction=0) / spread, 0.0)
    layer.mean.copy_(mean)
    layer.weight.copy_(weight * scale.unsqueeze(1))
    layer.bias.copy_(scores.mean(0))
