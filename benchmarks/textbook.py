"""HST's heads written down as the paper prints them, every pair and place materialised.

`bench` compares fewtags with it, and the tests use it as an oracle: on the same weights both give the same numbers
and the same gradients. Nothing here is clever on purpose, and nothing is imported from fewtags: `unfold.unfolded`
hands over the weights of a method.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

GAMMA_PRESENT, GAMMA_ABSENT, SHIFT = 1.0, 2.0, 0.05
LOCALITY = 4.0
SMALLEST_NORM = 1e-6
Messages = Literal["materialised", "product"]


class Part:
    """Tensors by role."""

    def tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass
class Decoupling(Part):
    """J joint size, J₂ size after P, E word size."""

    convolution: Tensor  # (D, channels, 1, 1)
    norm_scale: Tensor  # (D,)
    norm_shift: Tensor  # (D,)
    words: Tensor  # (C, E): x
    place_to_joint: Tensor  # (J, D): U
    word_to_joint: Tensor  # (J, E): V
    joint_to_fused: Tensor  # (J₂, J): P
    fused_bias: Tensor  # (J₂,): b
    fused_to_score: Tensor  # (1, J₂): f_a
    score_bias: Tensor  # (1,): of f_a


@dataclass
class Graph(Part):
    update_message: Tensor  # (D, 2D): W_z
    update_state: Tensor  # (D, D): U_z
    update_bias: Tensor  # (D,)
    reset_message: Tensor  # W_r
    reset_state: Tensor  # U_r
    reset_bias: Tensor
    candidate_message: Tensor  # W
    candidate_state: Tensor  # U
    candidate_bias: Tensor


@dataclass
class Classifier(Part):
    join: Tensor  # (hidden, 2D)
    join_bias: Tensor  # (hidden,)
    rows: Tensor  # (C, hidden)
    bias: Tensor  # (C,)


@dataclass
class Pairs(Part):
    reduce: Tensor  # (pair size, D)
    reduce_bias: Tensor
    second: Tensor  # (hidden, 2·pair size): [W_a, W_b]
    second_bias: Tensor
    score: Tensor  # (1, hidden): v
    score_bias: Tensor  # (1,): c


@dataclass
class Threshold(Part):
    theta: Tensor  # ()
    log_slope: Tensor  # (): log τ


def reduced_map(maps: Tensor, part: Decoupling) -> Tensor:
    """Maps (B, channels, H, W) → batch norm(1×1 convolution), (B, D, H, W); the batch's own statistics."""
    reduced = functional.conv2d(maps, part.convolution)
    return functional.batch_norm(reduced, None, None, part.norm_scale, part.norm_shift, training=True)


def decoupled_features(reduced: Tensor, part: Decoupling) -> Tensor:
    """f (B, D, H, W) → f_c = Σ_n a_cn f_n (B, C, D).

    f̃_cn = P tanh(U f_n ⊙ V x_c) + b; ã_cn = f_a(f̃_cn); a_c = softmax over places.
    """
    places = reduced.flatten(2).transpose(1, 2).unsqueeze(1)  # (B, 1, N, D)
    place_joint = functional.linear(places, part.place_to_joint)  # (B, 1, N, J)
    word_joint = functional.linear(part.words, part.word_to_joint)[:, None]  # (C, 1, J)
    joint = torch.tanh(place_joint * word_joint)  # (B, C, N, J)
    fused = functional.linear(joint, part.joint_to_fused, part.fused_bias)  # (B, C, N, J₂)
    scores = functional.linear(fused, part.fused_to_score, part.score_bias)  # (B, C, N, 1)
    attention = torch.softmax(scores, dim=2)
    return (attention * places).sum(2)  # through (B, C, N, D)


def gated_graph(
    states: Tensor, adjacency: Tensor, part: Graph, steps: int = 3, messages: Messages = "materialised"
) -> Tensor:
    """Node states h (B, C, D), A (C, C) → states after `steps` steps.

    a_c = [Σ_c' A_cc' h_c', Σ_c' A_c'c h_c']; z, r = σ(W a + U h); h ← (1 - z) h + z tanh(W a + U (r ⊙ h)).
    `product`: the sums as matrix products, which most people would write.
    """
    for _ in range(steps):
        inward, outward = _gathered(states, adjacency, messages), _gathered(states, adjacency.T, messages)
        message = torch.cat([inward, outward], dim=-1)  # (B, C, 2D)
        update = _gate(message, states, part.update_message, part.update_state, part.update_bias)
        reset = _gate(message, states, part.reset_message, part.reset_state, part.reset_bias)
        heard = functional.linear(message, part.candidate_message, part.candidate_bias)
        candidate = torch.tanh(heard + functional.linear(reset * states, part.candidate_state))
        states = (1 - update) * states + update * candidate
    return states


def _gathered(states: Tensor, adjacency: Tensor, messages: Messages) -> Tensor:
    if messages == "product":
        return adjacency @ states
    return (adjacency[:, :, None] * states[:, None]).sum(2)  # through (B, C, C, D): one message per pair


def _gate(message: Tensor, states: Tensor, from_message: Tensor, from_state: Tensor, bias: Tensor) -> Tensor:
    return torch.sigmoid(functional.linear(message, from_message, bias) + functional.linear(states, from_state))


def classified(states: Tensor, features: Tensor, part: Classifier) -> Tensor:
    """h, f (B, C, D) → logits (B, C): each category's own layer on tanh(FC [h_c, f_c])."""
    joined = torch.tanh(functional.linear(torch.cat([states, features], dim=-1), part.join, part.join_bias))
    columns = [joined[:, c] @ row + part.bias[c] for c, row in enumerate(part.rows)]
    return torch.stack(columns, dim=1)


def pair_probabilities(features: Tensor, part: Pairs) -> Tensor:
    """f (B, C, D) → p_ij (B, C, C), i asked for and j given: φ_intra([f_i, f_j]) for every pair."""
    batch, categories, size = features.shape
    shape = (batch, categories, categories, size)
    pairs = torch.cat([features[:, :, None].expand(shape), features[:, None].expand(shape)], dim=-1)
    halves = pairs.unflatten(-1, (2, size))  # (B, C, C, 2, D)
    first = torch.relu(functional.linear(halves, part.reduce, part.reduce_bias)).flatten(-2)
    second = torch.relu(functional.linear(first, part.second, part.second_bias))  # (B, C, C, hidden)
    return torch.sigmoid(functional.linear(second, part.score, part.score_bias)).squeeze(-1)


def pair_loss(probabilities: Tensor, labels: Tensor) -> Tensor:
    """p_ij (B, C, C), labels (B, C) → L_ist over pairs with j known present and i ≠ j known; asymmetric.

    y_i = +1: (1 - p)^γ₊ · -log p; y_i = -1: p_m^γ₋ · -log(1 - p_m), p_m = max(p - m, 0).
    """
    asked, given = labels[:, :, None], labels[:, None, :]
    other = ~torch.eye(labels.shape[1], dtype=torch.bool)
    present, absent = (asked == 1) & (given == 1) & other, (asked == -1) & (given == 1) & other
    shifted = (probabilities - SHIFT).clamp(min=0)
    for_present = (1 - probabilities.detach()) ** GAMMA_PRESENT * -torch.log(probabilities)
    for_absent = shifted.detach() ** GAMMA_ABSENT * -torch.log(1 - shifted)
    return _mean((for_present * present + for_absent * absent).sum(), (present | absent).sum())


def intra_evidence(probabilities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """p_ij (B, C, C), labels (B, C) → mean of p_ij over known present j ≠ i, and whether there is any; (B, C)."""
    witness = (labels[:, None, :] == 1) & ~torch.eye(labels.shape[1], dtype=torch.bool)  # (B, C, C)
    count = witness.sum(2)
    return _mean((probabilities * witness).sum(2), count), count > 0


def prototype_similarity(features: Tensor, prototypes: Tensor, counts: Tensor) -> Tensor:
    """f (B, C, D), prototypes (C, K, D) of which counts (C,) are there → mean of K cosines (B, C)."""
    cosines = functional.cosine_similarity(features[:, :, None], prototypes, dim=-1, eps=SMALLEST_NORM)
    there = torch.arange(prototypes.shape[1]) < counts[:, None]  # (C, K)
    return _mean((cosines * there).sum(-1), counts)


def contrastive(
    features: Tensor, labels: Tensor, partners: Tensor | None = None, partner_labels: Tensor | None = None
) -> Tensor:
    """f (B, C, D), labels (B, C) → L_cst over all pairs of images, and of images with partners (C, Q, D).

    ½ mean(1 - s over present, present) + ½ mean(1 + s over present, absent).
    """
    others, other_labels = features, labels
    if partners is not None and partner_labels is not None:
        others = torch.cat([features, partners.transpose(0, 1)])  # (B + Q, C, D)
        other_labels = torch.cat([labels, partner_labels.T])
    images, count = len(features), len(others)
    first = features.repeat_interleave(count, dim=0)  # (B·(B + Q), C, D)
    second = others.repeat(images, 1, 1)
    cosines = functional.cosine_similarity(first, second, dim=-1, eps=SMALLEST_NORM).unflatten(0, (images, count))
    once = torch.ones(images, count).triu(1)[:, :, None]  # a pair of images counts once
    one, two = labels[:, None], other_labels[None]
    alike, unlike = once * ((one == 1) & (two == 1)), once * (one * two == -1)  # (B, B + Q, C)
    pull, push = ((1 - cosines) * alike).sum(), ((1 + cosines) * unlike).sum()
    return (_mean(pull, alike.sum()) + _mean(push, unlike.sum())) / 2


def threshold_loss(evidence: Tensor, labels: Tensor, part: Threshold) -> Tensor:
    """Evidence and labels (B, C), 0 where not to be used → L_dtl: BCE of σ(d/τ), d = evidence - θ, near θ.

    Weights w = σ(4d/τ) σ(-4d/τ), scaled to 1 at the nearest entry, carry no gradient.
    """
    known = labels != 0
    scaled = (evidence - part.theta) / part.log_slope.exp()
    near = functional.logsigmoid(LOCALITY * scaled) + functional.logsigmoid(-LOCALITY * scaled)
    weights = torch.exp(near - near[known].max()).detach() if known.any() else torch.zeros_like(near)
    losses = -functional.logsigmoid(scaled) * (labels == 1) - functional.logsigmoid(-scaled) * (labels == -1)
    return _mean((weights * losses).sum(), known.sum())


def partial_bce(probabilities: Tensor, labels: Tensor) -> Tensor:
    """p (B, C), labels (B, C) → -log p over present and -log(1 - p) over absent, by the known entries' number."""
    losses = -torch.log(probabilities) * (labels == 1) - torch.log(1 - probabilities) * (labels == -1)
    return _mean(losses.sum(), (labels != 0).sum())


def _mean(total: Tensor, count: Tensor) -> Tensor:
    return total / count.clamp(min=1)


@dataclass
class Textbook:
    """All heads. `terms` gives the loss terms by fewtags' names."""

    decoupling: Decoupling
    graph: Graph
    classifier: Classifier
    pairs: Pairs
    intra: Threshold
    cross: Threshold
    adjacency: Tensor
    prototypes: Tensor
    counts: Tensor
    messages: Messages = "materialised"

    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Maps (B, channels, H, W) → features (B, C, D) and logits (B, C)."""
        features = decoupled_features(reduced_map(maps, self.decoupling), self.decoupling)
        return features, self.logits(features)

    def logits(self, features: Tensor) -> Tensor:
        states = gated_graph(features, self.adjacency, self.graph, messages=self.messages)
        return classified(states, features, self.classifier)

    def intra_terms(self, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """f (B, C, D) → L_ist, L_dtl, and what is decided present, (B, C) bool."""
        probabilities = pair_probabilities(features, self.pairs)
        evidence, available = intra_evidence(probabilities.detach(), labels)
        return pair_loss(probabilities, labels), *self._decided(evidence, available, labels, self.intra)

    def cross_terms(self, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """f (B, C, D) → L_cst, L_dtl, and what is decided present, (B, C) bool."""
        evidence = prototype_similarity(features.detach(), self.prototypes, self.counts)
        available = (self.counts > 0).expand_as(labels)
        return contrastive(features, labels), *self._decided(evidence, available, labels, self.cross)

    def _decided(
        self, evidence: Tensor, available: Tensor, labels: Tensor, threshold: Threshold
    ) -> tuple[Tensor, Tensor]:
        decided = (evidence >= threshold.theta) & available & (labels == 0)
        return threshold_loss(evidence, labels * available, threshold), decided

    def terms(self, features: Tensor, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        probabilities = torch.sigmoid(logits)
        intra, threshold_intra, by_intra = self.intra_terms(features, labels)
        cross, threshold_cross, by_cross = self.cross_terms(features, labels)
        return {
            "known": partial_bce(probabilities, labels),
            "intra": intra,
            "threshold_intra": threshold_intra,
            "pseudo_intra": partial_bce(probabilities, labels + by_intra),
            "cross": cross,
            "threshold_cross": threshold_cross,
            "pseudo_cross": partial_bce(probabilities, labels + (by_cross & ~by_intra)),
        }
