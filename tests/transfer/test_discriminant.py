"""The discriminants beside hst: what they read, their formula and scale, and that nothing trains through them."""

import pytest
import torch
from safetensors.torch import save_file
from sklearn.metrics import average_precision_score

import fewtags
from fewtags.nn.backbone_classes import BackboneClasses
from fewtags.transfer.discriminant import (
    RIDGES,
    USUAL_RIDGE,
    Description,
    Discriminant,
    Discriminants,
    best_ridge,
    comparison_of,
    left_out,
    spread_of,
    windows,
)
from tests.conftest import TINY
from tests.methods.test_methods import CATEGORIES, CHANNELS, EARLY, IMAGES, LATE, batch_of, labels_of, make
from tests.oracles.discriminant import direction, left_out_scores, root_description
from tests.transfer.test_plain_first import ready

import timm  # isort: skip


def classes_of(count: int, channels: int) -> BackboneClasses:
    draw = torch.Generator().manual_seed(3)
    return BackboneClasses(torch.randn(count, channels, generator=draw), torch.randn(count, generator=draw))


def learned(
    present: torch.Tensor, described: torch.Tensor, scores: torch.Tensor, ridge: float = 4.0
) -> tuple[Discriminant, torch.Tensor]:
    """And what it says of images that are left out."""
    layer = Discriminant(present.shape[1], described.shape[1])
    return layer, layer.learn(spread_of(described), ridge, present, scores)


@pytest.mark.parametrize("count", [0, 5])
def test_a_description_is_what_a_loop_over_features_gives(count: int):
    maps = torch.randn(20, 4, 5, 7, generator=torch.Generator().manual_seed(0))  # some are negative
    classes = classes_of(count, 4)
    description = Description(4, classes if count else None)
    roots = description.roots(maps)
    found = description.learn(roots)
    expected = torch.tensor(root_description(maps.tolist(), classes.weight.tolist(), classes.bias.tolist()))
    assert found.shape == (20, 4 + 2 * count)
    assert torch.allclose(found, expected, atol=1e-4)
    assert torch.allclose(description(maps), found, atol=1e-5)
    assert torch.allclose(description(maps[3:5]), found[3:5], atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 7), (14, 5)])
def test_windows_are_those_of_adaptive_pooling(shape: tuple[int, int]):
    maps = torch.randn(2, 3, *shape)
    expected = torch.nn.functional.adaptive_avg_pool2d(maps, 3).flatten(2).transpose(1, 2)
    assert torch.allclose(windows(maps), expected, atol=1e-6)


def drawn(images: int = 30, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Centred descriptions (n, 4) that vary together, labels (n, 3), scores (n, 3)."""
    draw = torch.Generator().manual_seed(seed)
    described = torch.randn(images, 4, generator=draw) @ torch.randn(4, 4, generator=draw)
    labels = torch.where(torch.rand(images, 3, generator=draw) < 0.4, 1, -1)
    labels[torch.rand(images, 3, generator=draw) < 0.3] = 0
    return described - described.mean(0), labels, 2 * torch.randn(images, 3, generator=draw) - 1


def test_weights_point_where_a_loop_says_and_scores_are_spread_as_those_given():
    described, labels, scores = drawn()
    layer, _ = learned(labels > 0, described, scores)
    for c in range(3):
        expected = torch.tensor(direction(described.tolist(), (labels[:, c] > 0).tolist(), 4.0))
        found = layer.weight[c]
        assert torch.allclose(found / found.norm(), expected / expected.norm(), atol=1e-4)
    given = layer(described)
    assert torch.allclose(given.mean(0), scores.mean(0), atol=1e-4)
    assert torch.allclose(given.std(0), scores.std(0), rtol=1e-4)


def test_an_image_left_out_has_the_score_that_the_others_give_it():
    described, labels, scores = drawn()
    layer, others = learned(labels > 0, described, scores)
    expected = torch.tensor(left_out_scores(described.tolist(), (labels > 0).tolist(), 4.0))
    absent = labels <= 0  # these are in no mean: their scores say how all are scaled
    scale = ((layer(described) - layer.bias) * absent).norm(dim=0) / (expected * absent).norm(dim=0)
    assert torch.allclose(others - layer.bias, expected * scale, atol=1e-3)


def test_the_ridge_is_the_one_that_ranks_known_labels_best_when_each_is_left_out():
    """Each image is left out of the means in turn, by a loop, and scikit-learn ranks what is known."""
    chosen = set()
    for seed in range(12):
        described, labels, _ = drawn(seed=seed)
        (ridge, reached), quality = best_ridge(spread_of(described), labels), {}
        for candidate in RIDGES:
            ranked = left_out_scores(described.tolist(), (labels > 0).tolist(), candidate)
            each = []
            for c in range(3):
                known = [i for i in range(len(labels)) if labels[i, c] != 0]
                truth = [bool(labels[i, c] > 0) for i in known]
                each.append(average_precision_score(truth, [ranked[i][c] for i in known]))
            quality[candidate] = sum(each) / 3
        assert quality[ridge] == pytest.approx(max(quality.values()), abs=1e-6)
        assert reached == pytest.approx(quality[ridge], abs=1e-6)
        chosen.add(ridge)
    assert len(chosen) > 2


def test_a_category_with_two_present_labels_has_no_say_in_the_ridge():
    """Left out, each has the score that it gives to the other: their order is that of rounding."""
    described, labels, _ = drawn()
    spread = spread_of(described)
    labels[:, 0] = -1
    labels[:2, 0] = 1
    first, second = left_out(spread, 4.0, labels > 0)[:2, 0].tolist()
    assert first == pytest.approx(second, rel=1e-4)
    assert best_ridge(spread, labels) == best_ridge(spread, labels[:, 1:])
    labels[2, 0] = 1
    assert best_ridge(spread, labels)[1] != best_ridge(spread, labels[:, 1:])[1]


def test_without_three_known_present_labels_the_usual_ridge_is_taken():
    described, labels, _ = drawn()
    spread = spread_of(described)
    labels[:] = -1
    labels[:2] = 1
    assert best_ridge(spread, labels) == (USUAL_RIDGE, 0)
    assert best_ridge(spread, torch.ones_like(labels)) == (USUAL_RIDGE, 0)  # nothing to rank them above


def test_a_category_never_present_and_images_that_never_differ_tell_nothing_apart():
    scores, present = torch.randn(9, 2), torch.zeros(9, 2, dtype=torch.bool)
    present[:4, 0] = True
    layer, _ = learned(present, torch.randn(9, 4), scores)
    assert layer.weight[0].any()
    assert not layer.weight[1].any()
    description = Description(4, classes_of(3, 4))
    alike, _ = learned(present, description.learn(description.roots(torch.ones(9, 4, 2, 2))), scores)
    assert not alike.weight.any()
    assert torch.allclose(alike(description(torch.randn(5, 4, 2, 2))), scores.mean(0))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_each_has_its_share_in_the_scores_and_none_in_the_losses(share: float):
    settings = {"own_share": 0.0, "plausible_share": 0.0, "cross_evidence": "features"}
    method, batch = ready(discriminant_share=share, **settings)
    outputs, pooled = method(batch.inputs), batch.inputs.mean((2, 3))
    plain, expected = method.plain.of_pooled(pooled), {"logits": outputs["network"]}
    expected["plain"] = plain
    if share:
        described = method.discriminants.description(batch.inputs)
        expected["logits"] = (1 - share) * outputs["network"] + share * method.discriminants.of_filled(described)
        expected["plain"] = (1 - share) * plain + share * method.discriminants.of_known(described)
    else:
        assert method.discriminants is None
    for name, value in expected.items():
        assert torch.allclose(outputs[name], value, atol=1e-5)
    alone, _ = ready(discriminant_share=0.0, **settings)
    terms, without = (m.losses(m(batch.inputs), batch, EARLY).terms for m in (method, alone))
    assert terms.keys() == without.keys()
    assert all(torch.equal(term, without[name]) for name, term in terms.items())


def test_labels_filled_by_own_score_move_one_of_them():
    (many, batch), (none, _) = ready(own_share=1.0), ready(own_share=0.0)
    scores = many.eval()(batch.inputs)["plain"]
    present = (batch.labels > 0) | many.own.passing(scores, batch.labels)
    assert present.sum() > (batch.labels > 0).sum()
    described = many.discriminants.description(batch.inputs)
    ridge, _ = best_ridge(spread_of(described), batch.labels)
    expected, _ = learned(present, described, scores, ridge)
    assert torch.allclose(many.discriminants.of_filled.weight, expected.weight, atol=1e-4)
    assert not torch.allclose(none.discriminants.of_filled.weight, many.discriminants.of_filled.weight)
    assert torch.equal(none.discriminants.of_known.weight, many.discriminants.of_known.weight)


def test_the_backbones_classes_are_read_where_there_are_any_and_they_are_asked_for():
    classes = classes_of(7, CHANNELS)
    for asked, given, count in ((True, classes, 7), (False, classes, 0), (True, None, 0)):
        method = make("hst", freeze_backbone=True, classes=given, discriminant_classes=asked)
        assert len(method.discriminants.description.class_bias) == count


@pytest.mark.parametrize("telling", [True, False])
def test_classes_that_tell_known_labels_apart_are_read_and_others_are_not(telling: bool):
    """A category is where one feature is the largest; classes say which is, or name each image at random."""
    draw = torch.Generator().manual_seed(0)
    maps = torch.rand(200, 6, 2, 2, generator=draw)
    labels = torch.where(torch.arange(6) == maps.mean((2, 3)).argmax(1, keepdim=True), 1.0, -1.0)
    weight = 60 * torch.eye(6) if telling else 60 * torch.randn(40, 6, generator=draw)
    discriminants = Discriminants(6, 6, BackboneClasses(weight, torch.zeros(len(weight))), 0.5)
    roots = discriminants.description.roots(maps)
    discriminants.learn(roots, labels, torch.zeros(200, 6), lambda _: labels > 9)
    scales = discriminants.description.scales
    assert (scales[1:] > 0).all() if telling else not scales[1:].any()
    assert scales[0] > 0


def test_without_a_frozen_backbone_or_the_layer_beside_there_are_none():
    assert make("hst", freeze_backbone=False).discriminants is None
    assert make("hst", freeze_backbone=True, plain_beside=False).discriminants is None
    logits = make("hst", freeze_backbone=False)(batch_of().inputs)["logits"]
    assert logits.shape == (IMAGES, CATEGORIES)


def test_likeness_is_to_a_categorys_known_images_and_to_others_where_it_teaches_the_threshold():
    labels = labels_of()
    labels[:, 0] = -1  # a category without images
    labels[:, 1] = -1
    labels[3, 1] = 1  # and one with a single image, which resembles no other
    method, batch = ready(labels, own_share=0.0)
    likeness, of_known = method(batch.inputs)["likeness"], method.discriminants.of_known
    described = method.discriminants.description(batch.inputs)
    assert likeness[:, 0].isnan().all()
    assert torch.allclose(likeness[:, 1:], torch.sigmoid(of_known(described))[:, 1:])
    scores = method.plain.of_pooled(batch.inputs.mean((2, 3)))
    roots = method.discriminants.description.roots(batch.inputs)
    taught = method.discriminants.learn(roots, batch.labels, scores, lambda _: batch.labels > 9)
    assert taught[:, 0].isnan().all()
    assert taught[:, 1].isnan().tolist() == [image == 3 for image in range(IMAGES)]
    known_present = batch.labels[:, 2:] == 1
    assert (taught[:, 2:] < likeness[:, 2:])[known_present].all()  # nobody vouches for himself
    assert torch.allclose(taught[:, 2:][~known_present], likeness[:, 2:][~known_present], atol=1e-5)


def test_a_score_is_the_mean_of_what_the_images_of_a_category_say_one_by_one():
    described, labels, _ = drawn()
    spread = spread_of(described)
    compared = described @ comparison_of(spread, 4.0, described.shape[1])
    for c in range(3):
        present = labels[:, c] > 0
        expected = described @ torch.tensor(direction(described.tolist(), present.tolist(), 4.0))
        assert torch.allclose((compared @ compared[present].T).mean(1), expected, atol=1e-4)


def test_of_all_directions_those_are_kept_that_say_most():
    described, _, _ = drawn()
    spread = spread_of(described)
    whole, part = (described @ comparison_of(spread, 4.0, count) for count in (4, 2))
    lost = (whole @ whole.T - part @ part.T).norm()
    for one in range(4):
        for other in range(one):
            chosen = comparison_of(spread, 4.0, 4)[:, [one, other]]
            left = described @ chosen
            assert lost <= (whole @ whole.T - left @ left.T).norm() + 1e-4


def test_the_threshold_across_images_is_fitted_once_to_the_likeness_to_others():
    method, batch = ready()
    expected = make("hst", freeze_backbone=True).cross.threshold
    roots = method.discriminants.description.roots(batch.inputs)
    scores = method.plain.of_pooled(batch.inputs.mean((2, 3)))
    likeness = method.discriminants.learn(roots, batch.labels, scores, lambda _: batch.labels > 9)
    used = (batch.labels != 0) & ~likeness.isnan()
    expected.fit(likeness[used], batch.labels[used])
    assert torch.equal(method.cross.threshold.value(), expected.value())
    step = method.losses(method(batch.inputs), batch, LATE)
    assert "threshold_cross" not in step.terms
    outputs = method(batch.inputs)
    passes = (outputs["likeness"] >= expected.value()) & (batch.labels == 0)
    assert torch.equal(method.transferred(outputs, batch)["cross"].proposed, passes)
    before = method.cross.threshold.value().clone()
    method.after_epoch(0, lambda: [(batch, method(batch.inputs))])
    assert torch.equal(method.cross.threshold.value(), before)


def test_features_are_compared_where_that_is_asked_for_or_there_is_no_discriminant():
    assert make("hst", freeze_backbone=True).cross.by_likeness
    for settings in ({"cross_evidence": "features"}, {"discriminant_share": 0.0}, {"plain_beside": False}):
        assert not make("hst", freeze_backbone=True, **settings).cross.by_likeness
    assert not make("hst", freeze_backbone=False).cross.by_likeness


def test_a_run_keeps_the_classes_it_reads(colours, tmp_path):
    """From weights that bring a classifier; without one there is nothing to keep."""
    network = timm.create_model("test_resnet", pretrained=False)
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    settings = TINY | {"epochs": 1, "backbone": "test_resnet", "known": 0.6, "freeze_backbone": True}
    with_classes = {"backbone_weights": str(tmp_path / "weights.safetensors")}
    for more, count in ((with_classes, network.num_classes), ({"pretrained": False}, 0)):
        run = fewtags.train(colours, out=tmp_path / f"run-{count}", method="hst", **(settings | more))
        tagger = fewtags.load(run)
        assert tagger.labels.backbone_classes == count
        description = tagger.method.discriminants.description
        assert len(description.class_bias) == count
        if count:
            assert torch.equal(description.class_weight, network.fc.weight)
        outputs = tagger.method(torch.randn(2, tagger.labels.channels, 3, 3))
        assert torch.isfinite(outputs["logits"]).all()
