"""The weights of an hst method as the paper has them: what fewtags folds together is taken apart again."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.textbook import Classifier, Decoupling, Graph, Messages, Pairs, Textbook, Threshold
from fewtags.methods.hst import Hst
from fewtags.nn.category_features import SemanticDecoupling
from fewtags.nn.classifier import CategoryClassifier
from fewtags.nn.label_graph import GatedGraph
from fewtags.transfer.intra import PairHead
from fewtags.transfer.thresholds import LearnedThreshold


def unfolded(method: Hst, messages: Messages = "materialised", seed: int = 0) -> Textbook:
    """Copies of all weights, each a leaf with a gradient."""
    tagger, reference = method.tagger, method.cross.references[0]
    return Textbook(
        decoupling(tagger.category_features, seed),
        gated_graph(tagger.graph),
        classifier(tagger.classifier),
        pairs(method.intra.heads[0]),
        threshold(method.intra.threshold),
        threshold(method.cross.threshold),
        tagger.adjacency.clone(),
        reference.vectors.clone(),
        reference.counts.clone(),
        messages,
    )


def decoupling(module: SemanticDecoupling, seed: int = 0) -> Decoupling:
    """Any P, b and f_a with f_a P = w do: they are drawn, then P is moved by what is missing."""
    draw = torch.Generator().manual_seed(seed)
    scores = module.joint_to_score.weight.detach()  # (1, J): w
    joint = scores.shape[1]
    attend = torch.randn(1, joint, generator=draw) / joint**0.5
    fuse = torch.randn(joint, joint, generator=draw) / joint**0.5
    fuse = fuse + attend.T @ (scores - attend @ fuse) / attend.square().sum()
    return Decoupling(
        convolution=_leaf(module.reduce.weight),
        norm_scale=_leaf(module.norm.weight),
        norm_shift=_leaf(module.norm.bias),
        words=_leaf(module.words),
        place_to_joint=_leaf(module.place_to_joint.weight),
        word_to_joint=_leaf(module.word_to_joint.weight),
        joint_to_fused=_leaf(fuse),
        fused_bias=_leaf(torch.randn(joint, generator=draw)),
        fused_to_score=_leaf(attend),
        score_bias=_leaf(torch.randn(1, generator=draw)),
    )


def gated_graph(module: GatedGraph) -> Graph:
    """Update gate, reset gate and candidate apart, where fewtags computes them at once."""
    update, reset, candidate = module.from_message.weight.chunk(3)
    update_bias, reset_bias, candidate_bias = module.from_message.bias.chunk(3)
    update_state, reset_state = module.gates_from_state.weight.chunk(2)
    candidate_state = module.candidate_from_state.weight
    kinds = (
        *(update, update_state, update_bias),
        *(reset, reset_state, reset_bias),
        *(candidate, candidate_state, candidate_bias),
    )
    return Graph(*map(_leaf, kinds))


def classifier(module: CategoryClassifier) -> Classifier:
    return Classifier(*map(_leaf, (module.join.weight, module.join.bias, module.rows, module.bias)))


def pairs(module: PairHead) -> Pairs:
    """The halves side by side: one layer on [g_i, g_j]."""
    return Pairs(
        reduce=_leaf(module.reduce.weight),
        reduce_bias=_leaf(module.reduce.bias),
        second=_leaf(torch.cat([module.asked_half.weight, module.given_half.weight], dim=1)),
        second_bias=_leaf(module.asked_half.bias),
        score=_leaf(module.score[None]),
        score_bias=_leaf(module.score_bias[None]),
    )


def threshold(module: LearnedThreshold) -> Threshold:
    return Threshold(_leaf(module.theta), _leaf(module.log_slope))


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_()
