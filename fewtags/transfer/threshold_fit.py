"""Fitting a threshold θ to known labels (SPEC 5): the loss, and the fit to a whole set at once.

θ should lie where P(present | evidence = θ) = ½. A logistic curve σ((evidence - θ)/τ) fitted to all known labels
puts it there only if the truth is logistic. It rarely is, and with few positives the many entries far below θ
decide: θ was off by 0.1 to 0.5 in trials. So entries count by how near to θ they are: a *local* logistic fit, with
weight 1 at θ, falling off within about τ/2. It needs the truth to look logistic only there, and lands within 0.05
for squares, ramps, steps and lopsided curves alike (not for a kink at ½ that is ten times steeper on one side).
The weights carry no gradient; θ and τ are both learned.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import beta
from torch import Tensor
from torch.nn import functional

from fewtags.losses.partial_bce import batch_ratio, elementwise_bce, safe_ratio
from fewtags.processes.together import largest

LOCALITY = 4.0
"""How much faster than the fitted curve the weights fall off: greater is less biased and noisier."""
FIT_LOCALITY = 6.0
"""The same when all entries are at hand, so that noise matters less than bias."""
SLOPE_BOUNDS = (2e-3, 10.0)
SMALLEST_SPREAD = 0.02
FIT_STEPS, FIT_LR = 300, 0.03
CONFIDENCE = 0.9
QUANTILE_ENTRIES = 2**24  # the most that torch.quantile takes


def local_logistic_loss(
    difference: Tensor,
    slope: Tensor,
    labels: Tensor,
    level_logit: float = 0.0,
    locality: float = LOCALITY,
    everyone: bool = False,
) -> Tensor:
    """d = evidence - θ of any shape, τ, labels of -1, 0, +1 → Σ w·BCE(σ(d/τ + level), y) / entries used.

    w = σ'(locality·d/τ), no gradient, scaled to 1 at the used entry nearest to θ: some entries always move it.
    `everyone`: the entries are a share of a batch that is spread over processes.
    """
    used = labels != 0
    with torch.no_grad():
        nearness = log_nearness(locality * difference / slope).masked_fill(~used, -torch.inf)
        nearest = largest(_largest(nearness)) if everyone else _largest(nearness)
        weights = (nearness - nearest).exp()
    losses = weights * elementwise_bce(difference / slope + level_logit, labels)
    return (batch_ratio if everyone else safe_ratio)(losses.sum(), used.sum())


def log_nearness(x: Tensor) -> Tensor:
    """log(4 σ(x) σ(-x)): 0 at 0, falling to both sides; a logarithm, as far from θ the weight rounds to 0."""
    return math.log(4) + functional.logsigmoid(x) + functional.logsigmoid(-x)


def _largest(values: Tensor) -> Tensor:
    """The largest value, finite also if there is none."""
    return torch.cat([values.flatten(), values.new_full((1,), -1e30)]).amax()


class Fitted(NamedTuple):
    theta: Tensor
    log_slope: Tensor
    offset: Tensor
    """(C,) of each category from θ, not shrunken; zeros without categories."""


@torch.enable_grad()
def fit_local_logistic(
    evidence: Tensor,
    present: Tensor,
    category: Tensor | None = None,
    categories: int = 1,
    level_logit: float = 0.0,
    maximum: float = 1.0,
) -> Fitted:
    """Evidence (M,), present (M,) bool, categories (M,) or None → θ, log τ and offsets at rest.

    The loss that training minimises, on all entries at once, with a step that fades out. It starts where as many
    entries lie above θ as are present.
    """
    evidence, labels = evidence.detach().float(), torch.where(present, 1.0, -1.0)
    theta = torch.quantile(evidence[:QUANTILE_ENTRIES], 1 - present.float().mean()).requires_grad_()
    log_slope = evidence.std().clamp(min=SMALLEST_SPREAD).log().requires_grad_()
    offset = evidence.new_zeros(categories).requires_grad_()
    # The smallest eps: a category far from θ has tiny weights, yet its offset must move.
    optimizer = torch.optim.Adam([theta, log_slope, offset], lr=FIT_LR, eps=1e-30)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, FIT_STEPS)
    for _ in range(FIT_STEPS):
        loss = local_logistic_loss(evidence - theta, log_slope.exp(), labels, level_logit, FIT_LOCALITY)
        if category is not None:
            own = evidence - theta.detach() - offset[category]
            loss = loss + local_logistic_loss(own, log_slope.exp().detach(), labels, level_logit, FIT_LOCALITY)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            theta.clamp_(0, maximum)
            log_slope.clamp_(*(math.log(bound) for bound in SLOPE_BOUNDS))
    return Fitted(theta.detach(), log_slope.detach(), offset.detach())


def surest_precision(evidence: Tensor, present: Tensor, precision: float, otherwise: float = 1.0) -> float:
    """Evidence (M,), present (M,) bool → the smallest θ with this precision above it; else `otherwise`.

    Judged by the lower 90 % bound (one-sided, Clopper-Pearson) of the share of present among evidence ≥ θ.
    """
    order = torch.argsort(evidence, descending=True, stable=True)
    descending = evidence[order].double().cpu().numpy()
    right = present[order].double().cumsum(0).cpu().numpy()
    count = np.arange(1, len(right) + 1)
    lower = np.where(right > 0, beta.ppf(1 - CONFIDENCE, np.maximum(right, 1), count - right + 1), 0.0)
    takes_all_ties = np.append(descending[1:] < descending[:-1], True)
    passing = np.flatnonzero((lower >= precision) & takes_all_ties)
    return float(descending[passing[-1]]) if len(passing) else otherwise
