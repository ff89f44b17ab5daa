"""Thresholds that learn themselves from known labels (DTL, SPEC 5) or follow a schedule (SST), and the pseudo
labels they decide."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from fewtags.labels.sparse import value_count_by_category
from fewtags.labels.table import PRESENT
from fewtags.losses.partial_bce import partial_bce
from fewtags.processes.together import total as total_of_all
from fewtags.recipe import Recipe
from fewtags.transfer.threshold_fit import (
    SLOPE_BOUNDS,
    fit_local_logistic,
    local_logistic_loss,
    surest_precision,
)

Scope = Literal["global", "per_category"] | float
WRONG_COST = 0.41
"""What a wrong pseudo label costs in right ones (`utility`), from what pseudo labels did to mAP on photographs
(53 % right at 55 % recall: +3.0; 86 % at 28 %: +0.8; 22 % at 80 %: -3.2)."""
PRIOR_POSITIVES = 20.0
ENTRIES_FOR_SLOPE = 1000
SCHEDULE_EPOCHS = 20
"""The epochs for which `threshold_fall` is given."""


class Threshold(nn.Module):
    """What evidence has to pass. Known labels teach it nothing unless a subclass says so."""

    def value(self) -> Tensor:
        """(C,) thresholds in force."""
        raise NotImplementedError

    @torch.no_grad()
    def decide(self, evidence: Tensor, available: Tensor) -> Tensor:
        """Evidence (B, C), available (B, C) bool → which entries pass, bool (B, C)."""
        return (evidence >= self.value()) & available

    def start_epoch(self, epoch: int) -> None:
        """Called with the epoch (from 0) before each step."""

    def start_slope(self, evidence: Tensor, mask: Tensor) -> None:
        """Called with the evidence of known entries, where mask (B, C) is True, before each loss."""

    def loss(self, evidence: Tensor, labels: Tensor) -> Tensor | None:
        """None: there is nothing to learn."""
        return None

    def clamp_(self) -> None:
        """Called after each step of the optimiser."""

    def count_positives(self, labels: Tensor) -> None:
        """Labels (n, C) that teach this threshold."""

    def fit(self, evidence: Tensor, labels: Tensor, category: Tensor | None = None) -> None:
        """Called with the evidence (M,) and labels (M,) of all known entries after a walk."""


class FallingThreshold(Threshold):
    """SST's schedule: one θ for all categories that depends on the epoch alone."""

    theta: Tensor
    """The threshold of the last epoch that was started: saved, as completing labels needs it."""

    def __init__(self, categories: int, recipe: Recipe):
        super().__init__()
        self.categories, self.recipe = categories, recipe
        self.register_buffer("theta", torch.tensor(recipe.threshold_start))

    def value(self) -> Tensor:
        return self.theta.expand(self.categories)

    def start_epoch(self, epoch: int) -> None:
        self.theta.fill_(falling_threshold(self.recipe, epoch))


def falling_threshold(recipe: Recipe, epoch: int) -> float:
    """Epoch (from 0) → max(floor, start - fall · 20 / epochs · epochs since warm-up)."""
    fall = recipe.threshold_fall * SCHEDULE_EPOCHS / recipe.epochs
    since_warmup = max(0, epoch - recipe.warmup_epochs)
    return max(recipe.threshold_floor, recipe.threshold_start - fall * since_warmup)


class LearnedThreshold(Threshold):
    """θ (starts at 1), the slope τ = exp(log_slope), and with `per_category` an offset of each category.

    `scope`: "global", "per_category", or a number: a fixed θ. `target`: "half"; "utility", where one more pseudo
    label neither helps nor harms: P(present | evidence = θ) = cost / (1 + cost); or "precision:Q", which `fit`
    alone sets.
    `maximum`: of θ; None: unbounded. `style="released"`: the released code's loss, in which θ only decays.
    """

    positives: Tensor
    """(C,) known present labels behind each category's offset; with n of them, n / (n + 20) of it is kept."""
    decision: Tensor
    """(C,) thresholds that "precision:Q" promised; until `fit`, out of reach."""
    started: Tensor
    spread: Tensor
    category_axes: ClassVar = {"offset": (0,)}

    def __init__(
        self,
        categories: int,
        scope: Scope = "global",
        target: str = "half",
        maximum: float | None = 1.0,
        style: Literal["learned", "released"] = "learned",
    ):
        super().__init__()
        self.scope, self.target, self.style = scope, target, style
        self.maximum = math.inf if maximum is None else maximum
        fixed = isinstance(scope, float | int)
        self.theta = nn.Parameter(torch.tensor(float(scope) if fixed else 1.0), requires_grad=not fixed)
        self.log_slope = nn.Parameter(torch.tensor(math.log(0.1)), requires_grad=style == "learned")
        self.offset = nn.Parameter(torch.zeros(categories), requires_grad=scope == "per_category")
        self.register_buffer("positives", torch.zeros(categories))
        self.register_buffer("decision", torch.full((categories,), self.maximum))
        self.register_buffer("started", torch.tensor(False))
        self.register_buffer("spread", torch.zeros(3))  # entries seen, their sum, their sum of squares
        self._slope_has_started = False
        self._epoch: int | None = None

    @property
    def slope(self) -> Tensor:
        """τ"""
        return self.log_slope.exp()

    @property
    def learns(self) -> bool:
        """Whether known labels move θ by gradient or by `fit`."""
        return self.style == "learned" and not isinstance(self.scope, float | int)

    @torch.no_grad()
    def value(self) -> Tensor:
        """(C,) thresholds in force."""
        if self.learns and self.target.startswith("precision"):
            return self.decision
        shrunken = self.offset * self.positives / (self.positives + PRIOR_POSITIVES)
        return (self.theta + shrunken).clamp(0, self.maximum) if self.learns else self.theta + 0 * self.offset

    def loss(self, evidence: Tensor, labels: Tensor) -> Tensor:
        """Evidence (B, C), labels (B, C), 0 where not to be used → L_dtl; 0 with a graph if nothing is used."""
        if self.style == "released":
            return partial_bce((evidence - self.theta).clamp(0, 1), labels)
        total = local_logistic_loss(evidence - self.theta, self.slope, labels, self._level_logit, everyone=True)
        if self.scope == "per_category":
            own = evidence - self.theta.detach() - self.offset
            total = total + local_logistic_loss(own, self.slope, labels, self._level_logit, everyone=True)
        return total

    @property
    def _level_logit(self) -> float:
        """logit of P(present | evidence = θ): ½, or where the next pseudo label's gain equals its cost."""
        return math.log(WRONG_COST) if self.target == "utility" else 0.0

    def start_epoch(self, epoch: int) -> None:
        """Look once an epoch whether τ has started: each look waits for the device."""
        if epoch != self._epoch:
            self._epoch, self._slope_has_started = epoch, bool(self.started)

    @torch.no_grad()
    def start_slope(self, evidence: Tensor, mask: Tensor) -> None:
        """Set τ to the evidence's spread where mask (B, C) is True, over the first batches; later, do nothing."""
        if self._slope_has_started:
            return
        used = torch.where(mask, evidence, 0).double()
        seen = total_of_all(torch.stack([mask.sum(), used.sum(), used.square().sum()]).to(self.spread))
        self.spread += torch.where(self.started, 0, seen)
        count, total, squares = self.spread.double()
        variance = squares / count.clamp(min=1) - (total / count.clamp(min=1)) ** 2
        log_spread = variance.clamp(min=0.02**2).sqrt().log().to(self.log_slope.dtype)
        self.log_slope.copy_(torch.where(self.started | (count <= 1), self.log_slope, log_spread))
        self.started.logical_or_(count >= ENTRIES_FOR_SLOPE)

    @torch.no_grad()
    def clamp_(self) -> None:
        """Keep θ in [0, maximum] and τ within reason: called after each step of the optimiser."""
        if self.learns:
            self.theta.clamp_(0, self.maximum)
        self.log_slope.clamp_(*(math.log(bound) for bound in SLOPE_BOUNDS))

    @torch.no_grad()
    def count_positives(self, labels: Tensor) -> None:
        """Labels (n, C) that teach this threshold: how far each category's offset is trusted."""
        self.positives.copy_(torch.as_tensor(value_count_by_category(labels, PRESENT)))

    @torch.no_grad()
    def fit(self, evidence: Tensor, labels: Tensor, category: Tensor | None = None) -> None:
        """Refit to convergence on evidence (M,), labels (M,) of -1, 0, +1, of categories (M,).

        Nothing happens without both present and absent labels: no threshold can be told from one kind.
        """
        used = labels != 0
        evidence, present = evidence[used].float(), labels[used] > 0
        category = category[used] if category is not None and self.scope == "per_category" else None
        if not self.learns or not present.any() or present.all():
            return
        fitted = fit_local_logistic(evidence, present, category, len(self.offset), self._level_logit, self.maximum)
        self.theta.copy_(fitted.theta)
        self.log_slope.copy_(fitted.log_slope)
        self.offset.copy_(fitted.offset)
        if category is not None:
            self.positives.copy_(torch.bincount(category[present], minlength=len(self.offset)))
        self.started.fill_(True)
        self.clamp_()
        if self.target.startswith("precision"):
            self._promise(float(self.target.partition(":")[2]), evidence, present, category)

    def _promise(self, precision: float, evidence: Tensor, present: Tensor, category: Tensor | None) -> None:
        common = surest_precision(evidence, present, precision, self.maximum)
        self.decision.fill_(common)
        if category is None:
            return
        for index in category.unique().tolist():
            mine = category == index
            own = surest_precision(evidence[mine], present[mine], precision, self.maximum)
            trust = float(self.positives[index] / (self.positives[index] + PRIOR_POSITIVES))
            self.decision[index] = common if math.isinf(own) else common + trust * (own - common)


def make_threshold(
    recipe: Recipe, module: Literal["intra", "cross"], categories: int, maximum: float | None = 1.0
) -> Threshold:
    """The threshold that the recipe asks for, of one module."""
    if recipe.thresholds == "falling":
        return FallingThreshold(categories, recipe)
    scope = recipe.threshold_of(module)
    return LearnedThreshold(categories, scope, recipe.threshold_target, maximum, recipe.thresholds)


@torch.no_grad()
def pseudo_labels(labels: Tensor, decided: Tensor) -> Tensor:
    """Labels (B, C), decided (B, C) bool → +1 where the label is unknown and decided, else 0; of labels' type."""
    return ((labels == 0) & decided).to(labels.dtype)
