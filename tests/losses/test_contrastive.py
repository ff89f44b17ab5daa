import pytest
import torch

from fewtags.losses.contrastive import contrastive
from tests.oracles import losses as oracle


def made_up(seed=0, images=6, categories=4, size=3, slots=5):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(images, categories, size, generator=generator).requires_grad_()
    labels = torch.randint(-1, 2, (images, categories), generator=generator).float()
    partners = torch.randn(categories, slots, size, generator=generator)
    partner_labels = torch.randint(-1, 2, (categories, slots), generator=generator).float()
    return features, labels, partners, partner_labels


@pytest.mark.parametrize("absent_pairs", ["ignore", "include"])
@pytest.mark.parametrize("with_queue", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_double_loop_over_pairs(absent_pairs, with_queue, seed):
    features, labels, partners, partner_labels = made_up(seed)
    queue = (partners, partner_labels) if with_queue else ()
    expected = oracle.contrastive(
        features.tolist(),
        labels.tolist(),
        *(part.tolist() for part in queue),
        include_absent_pairs=absent_pairs == "include",
    )
    loss = contrastive(features, labels, *(queue or (None, None)), absent_pairs)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_all_present_pulls_alone():
    features, _, _, _ = made_up()
    labels = torch.ones(features.shape[:2])
    expected = oracle.contrastive(features.tolist(), labels.tolist())
    assert contrastive(features, labels).item() == pytest.approx(expected, rel=1e-5)
    assert contrastive(torch.ones_like(features), labels).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("known", [0, -1])
def test_without_pairs_a_zero_with_a_graph(known):
    features, labels, _, _ = made_up()
    loss = contrastive(features, torch.full_like(labels, known))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(features.grad, torch.zeros_like(features))


def test_unknown_entries_have_exactly_zero_gradient():
    features, labels, partners, partner_labels = made_up()
    contrastive(features, labels, partners, partner_labels, "include").backward()
    assert (features.grad[labels == 0] == 0).all()
    assert (features.grad[labels == 1] != 0).any()


def test_empty_slots_do_not_count():
    features, labels, partners, partner_labels = made_up()
    partner_labels[:, 2:] = 0
    with_empty = contrastive(features, labels, partners, partner_labels)
    assert with_empty.item() == pytest.approx(
        contrastive(features, labels, partners[:, :2], partner_labels[:, :2]).item()
    )


def test_a_zero_feature_keeps_the_gradient_finite():
    features, labels, _, _ = made_up()
    with torch.no_grad():
        features[0] = 0
    contrastive(features, torch.ones_like(labels)).backward()
    assert torch.isfinite(features.grad).all()


def test_integer_labels_are_fine():
    features, labels, partners, partner_labels = made_up()
    assert torch.equal(
        contrastive(features, labels.to(torch.int8), partners, partner_labels.to(torch.int8)),
        contrastive(features, labels, partners, partner_labels),
    )
