import pytest
import torch

from fewtags.losses.partial_bce import partial_bce
from tests.oracles import losses as oracle

NORMALIZATIONS = ["batch", "image", "categories"]


def made_up(seed=0, images=7, categories=5):
    generator = torch.Generator().manual_seed(seed)
    logits = (3 * torch.randn(images, categories, generator=generator)).requires_grad_()
    labels = torch.randint(-1, 2, (images, categories), generator=generator)
    labels[2] = 0  # an image of which nothing is known
    weights = torch.rand(images, categories, generator=generator)
    return logits, labels, weights


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_double_loop(normalization, weighted):
    logits, labels, weights = made_up()
    chosen = weights if weighted else None
    expected = oracle.partial_bce(
        logits.tolist(), labels.tolist(), normalization, chosen.tolist() if weighted else None
    )
    assert partial_bce(logits, labels, normalization, chosen).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_all_known_is_the_ordinary_mean(normalization):
    logits, labels, _ = made_up()
    labels = torch.where(labels == 0, -1, labels)
    ordinary = torch.nn.functional.binary_cross_entropy_with_logits(logits, (labels > 0).float())
    assert partial_bce(logits, labels.float(), normalization).item() == pytest.approx(ordinary.item(), rel=1e-5)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_nothing_known_is_a_zero_with_a_graph(normalization):
    logits, labels, _ = made_up()
    loss = partial_bce(logits, torch.zeros_like(labels), normalization)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_unknown_entries_have_exactly_zero_gradient_whatever_their_logit(normalization):
    logits, labels, _ = made_up()
    with torch.no_grad():
        logits[2, 0], logits[2, 1] = torch.inf, torch.nan
    partial_bce(logits, labels, normalization).backward()
    assert (logits.grad[labels == 0] == 0).all()
    assert (logits.grad[labels != 0] != 0).all()


def test_extreme_logits_stay_finite():
    logits = torch.tensor([[1e4, -1e4]], requires_grad=True)
    loss = partial_bce(logits, torch.tensor([[-1, 1]]))
    loss.backward()
    assert loss.item() == pytest.approx(1e4)
    assert torch.isfinite(logits.grad).all()


def test_a_weight_of_zero_is_as_good_as_unknown():
    logits, labels, _ = made_up()
    weights = torch.ones_like(logits)
    weights[:, 1] = 0
    without = labels.clone()
    without[:, 1] = 0
    assert partial_bce(logits, labels, "batch", weights).item() == pytest.approx(
        partial_bce(logits, without, "batch").item()
    )
