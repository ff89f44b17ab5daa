import pytest
import torch

from fewtags.transfer import curriculum
from fewtags.transfer.own_predictions import own_predictions
from tests.oracles import curriculum as oracle
from tests.oracles.losses import sigmoid


def made_up(seed=0, images=9, categories=6):
    generator = torch.Generator().manual_seed(seed)
    logits, second = (3 * torch.randn(2, images, categories, generator=generator)).unbind()
    return logits, second, torch.randint(-1, 2, (images, categories), generator=generator)


def decide(strategy, logits, second, labels, least, share):
    decided = {
        "threshold": lambda: curriculum.by_threshold(logits, least),
        "positives": lambda: curriculum.by_positives(logits, least),
        "agreement": lambda: curriculum.by_agreement(logits, second, least),
        "proportion": lambda: curriculum.by_proportion(logits, labels == 0, share),
    }[strategy]()
    return curriculum.only_unknown(decided, labels)


STRATEGIES = ["threshold", "positives", "agreement", "proportion"]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("least", "share"), [(0.9, 0.5), (0.6, 0.1), (0.5, 1.0)])
def test_equals_the_loop(strategy, least, share):
    logits, second, labels = made_up()
    given = decide(strategy, logits, second, labels, least, share)
    assert given.dtype == torch.int8
    assert given.any()
    expected = oracle.label(strategy, logits.tolist(), second.tolist(), labels.tolist(), least, share)
    assert given.tolist() == expected


def test_strategies_differ():
    logits, second, labels = made_up()
    given = [decide(strategy, logits, second, labels, 0.7, 0.5) for strategy in STRATEGIES]
    assert len({str(labels.tolist()) for labels in given}) == len(STRATEGIES)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_known_leaves_nothing_to_label(strategy):
    logits, second, labels = made_up()
    known = torch.where(labels == 0, -1, labels)
    assert not decide(strategy, logits, second, known, 0.5, 1.0).any()


def test_nothing_known_labels_every_entry_when_all_pass():
    logits, second, labels = made_up()
    nothing = torch.zeros_like(labels)
    for strategy in ("threshold", "proportion"):
        assert (decide(strategy, logits, second, nothing, 0.5, 1.0) != 0).all()


def test_proportion_of_nothing_labels_nothing():
    logits, second, labels = made_up()
    assert not decide("proportion", logits, second, labels, 0.9, 0.0).any()


@pytest.mark.parametrize(("epochs", "rounds"), [(20, 4), (10, 4), (7, 3), (3, 4), (1, 4), (5, 1)])
def test_rounds_are_of_about_equal_length(epochs, rounds):
    ends = curriculum.round_ends(epochs, rounds)
    lengths = oracle.round_lengths(epochs, ends)
    assert len(lengths) == min(rounds, epochs)
    assert min(lengths) >= 1
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9])
def test_own_predictions_equal_the_loop(confidence):
    logits, _, labels = made_up()
    rows = zip(logits.tolist(), labels.tolist(), strict=True)
    expected = [[y == 0 and sigmoid(x) >= confidence for x, y in zip(*row, strict=True)] for row in rows]
    assert own_predictions(logits, labels, confidence).tolist() == expected


def test_own_predictions_carry_no_gradient_and_leave_known_labels_alone():
    logits, _, labels = made_up()
    proposed = own_predictions(logits.requires_grad_(), labels, 0.0)
    assert not proposed.requires_grad
    assert torch.equal(proposed, labels == 0)
