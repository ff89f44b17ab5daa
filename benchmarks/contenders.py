"""What one step of a case computes: forward, losses and backward, by fewtags or as printed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks import textbook
from benchmarks.cases import WHOLE, Case
from benchmarks.textbook import Part, Textbook
from benchmarks.unfold import unfolded
from benchmarks.workload import AS_PRINTED, CHANNELS, TINY, make_batch, make_method, noise, total, weighted
from fewtags.batch import Batch
from fewtags.losses.partial_bce import partial_bce
from fewtags.methods.hst import Hst

Step = Callable[[], Tensor]
"""Computes one step; gives its loss."""


def make_step(case: Case) -> Step:
    """All that a step needs is made here, so that a step only computes."""
    if case.module in WHOLE:
        from benchmarks import whole  # imports backbones and the trainer

        return whole.make_step(case)
    channels = CHANNELS if case.scale == "paper" else 12
    sizes = TINY if case.scale == "tiny" else {}
    method = make_method(case.categories, channels, **(AS_PRINTED | sizes))
    batch = make_batch(case.batch, case.categories, case.side, channels, case.known)
    if case.contender == "ours":
        return OURS[case.module](method, batch)
    messages = "product" if case.contender == "textbook_product" else "materialised"
    return PRINTED[case.module](unfolded(method, messages), method, batch)


def our_decoupling(method: Hst, batch: Batch) -> Step:
    """From the reduced map on: the 1×1 convolution before it is the same for both."""
    module, (reduced, direction) = method.tagger.category_features, _reduced_and_direction(method, batch)
    module.reduce, module.norm = nn.Identity(), nn.Identity()  # type: ignore[assignment]
    return _stepping(module, [reduced], lambda: (module(reduced).features * direction).sum())


def printed_decoupling(book: Textbook, method: Hst, batch: Batch) -> Step:
    reduced, direction = _reduced_and_direction(method, batch)
    part = book.decoupling
    return _stepping(
        None, [reduced, *_weights(part)], lambda: (textbook.decoupled_features(reduced, part) * direction).sum()
    )


def our_graph(method: Hst, batch: Batch) -> Step:
    features, tagger = _features(method, batch), method.tagger
    return _stepping(tagger, [features], lambda: partial_bce(tagger.score(features), batch.targets))


def printed_graph(book: Textbook, method: Hst, batch: Batch) -> Step:
    features = _features(method, batch)
    return _stepping(
        None,
        [features, *_weights(book.graph), *_weights(book.classifier)],
        lambda: textbook.partial_bce(torch.sigmoid(book.logits(features)), batch.labels),
    )


def our_transfer(name: str) -> Callable[[Hst, Batch], Step]:
    def make(method: Hst, batch: Batch) -> Step:
        features, module, adjacency = _features(method, batch), method.transfers[name], method.tagger.adjacency

        def loss() -> Tensor:
            part = module(features, batch, adjacency)
            return part.loss + part.threshold_loss

        return _stepping(module, [features], loss)

    return make


def printed_transfer(name: str) -> Callable[[Textbook, Hst, Batch], Step]:
    def make(book: Textbook, method: Hst, batch: Batch) -> Step:
        features = _features(method, batch)
        terms = book.intra_terms if name == "intra" else book.cross_terms
        trained = [*_weights(book.pairs), *_weights(book.intra), *_weights(book.cross)]

        def loss() -> Tensor:
            own, threshold, _ = terms(features, batch.labels)
            return own + threshold

        return _stepping(None, [features, *trained], loss)

    return make


def our_thresholds(method: Hst, batch: Batch) -> Step:
    evidence, threshold = _evidence(batch), method.intra.threshold

    def loss() -> Tensor:
        threshold.decide(evidence, batch.labels == 0)
        return threshold.loss(evidence, batch.labels)

    return _stepping(threshold, [], loss)


def printed_thresholds(book: Textbook, method: Hst, batch: Batch) -> Step:
    evidence = _evidence(batch)

    def loss() -> Tensor:
        _ = (evidence >= book.intra.theta) & (batch.labels == 0)
        return textbook.threshold_loss(evidence, batch.labels, book.intra)

    return _stepping(None, _weights(book.intra), loss)


def our_heads(method: Hst, batch: Batch) -> Step:
    batch.inputs.requires_grad_()  # as when the backbone's last stage is trained
    return _stepping(method, [batch.inputs], lambda: total(method, batch))


def printed_heads(book: Textbook, method: Hst, batch: Batch) -> Step:
    batch.inputs.requires_grad_()
    parts = book.decoupling, book.graph, book.classifier, book.pairs, book.intra, book.cross
    trained = [batch.inputs, *(weight for part in parts for weight in _weights(part))]
    return _stepping(
        None, trained, lambda: weighted(book.terms(*book.forward(batch.inputs), batch.labels), method)
    )


OURS: dict[str, Callable[[Hst, Batch], Step]] = {
    "sd": our_decoupling,
    "graph": our_graph,
    "intra": our_transfer("intra"),
    "cross": our_transfer("cross"),
    "thresholds": our_thresholds,
    "heads": our_heads,
}
PRINTED: dict[str, Callable[[Textbook, Hst, Batch], Step]] = {
    "sd": printed_decoupling,
    "graph": printed_graph,
    "intra": printed_transfer("intra"),
    "cross": printed_transfer("cross"),
    "thresholds": printed_thresholds,
    "heads": printed_heads,
}


def _stepping(module: nn.Module | None, others: list[Tensor], loss: Callable[[], Tensor]) -> Step:
    """Gradients are dropped before each step, as training does."""
    trained = [*(module.parameters() if module is not None else ()), *others]

    def step() -> Tensor:
        for tensor in trained:
            tensor.grad = None
        value = loss()
        value.backward()
        return value.detach()

    return step


def _features(method: Hst, batch: Batch) -> Tensor:
    shape = (*batch.labels.shape, method.recipe.feature_size)
    return noise(*shape).requires_grad_()


def _evidence(batch: Batch) -> Tensor:
    return torch.sigmoid(noise(*batch.labels.shape))


def _reduced_and_direction(method: Hst, batch: Batch) -> tuple[Tensor, Tensor]:
    """The reduced map (B, D, H, W), and the gradient (B, C, D) that comes back to the features."""
    size = method.recipe.feature_size
    reduced = noise(len(batch.labels), size, *batch.inputs.shape[2:]).requires_grad_()
    return reduced, noise(*batch.labels.shape, size, seed=1)


def _weights(part: Part) -> list[Tensor]:
    return list(part.tensors().values())
