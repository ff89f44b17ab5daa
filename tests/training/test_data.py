import numpy as np
import pytest
import torch

from fewtags.training.data import (
    CachedMaps,
    EpochOrder,
    KnownLabels,
    pool_maps,
    train_loader,
    walk_loader,
    weak_absents,
)

LABELS = np.array([[1, 0, -1], [0, 0, 1], [0, -1, 0], [1, 1, 0], [0, 0, 0]], dtype=np.int8)


def maps_of(rows=5, views=2):
    """Every value of a map tells its row and view."""
    maps = np.zeros((rows, views, 4, 2, 2), np.float16)
    maps += 10 * np.arange(rows)[:, None, None, None, None] + np.arange(views)[None, :, None, None, None]
    return maps


def test_order_depends_on_seed_and_epoch_alone():
    def order(seed, epoch):
        sampler = EpochOrder(10, 2, seed)
        list(sampler)  # what ran before does not matter
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(0, 3) == order(0, 3)
    assert order(0, 3) != order(0, 4)
    assert order(0, 3) != order(1, 3)
    rows = [row for batch in order(0, 3) for row, _ in batch]
    assert sorted(rows) == list(range(10))


def test_labels_stay_with_their_images():
    loader = train_loader(CachedMaps(maps_of()), KnownLabels(LABELS), batch_size=2, seed=0, workers=0)
    for batch in loader:
        rows = batch.image_index
        assert torch.equal((batch.inputs[:, 0, 0, 0] // 10).long(), rows)
        assert torch.equal(batch.labels, torch.from_numpy(LABELS[rows.numpy()]).float())
        present = [(image, given) for image, given in (batch.labels == 1).nonzero().tolist()]
        assert present == list(zip(batch.pair_images.tolist(), batch.pair_given.tolist(), strict=True))


def test_walk_sees_every_row_once_and_plain():
    loader = walk_loader(CachedMaps(maps_of()), KnownLabels(LABELS), batch_size=2, workers=0)
    values = torch.cat([batch.inputs[:, 0, 0, 0] for batch in loader])
    assert values.tolist() == [0, 10, 20, 30, 40]


def test_training_sees_other_views_too():
    loader = train_loader(CachedMaps(maps_of(40)), KnownLabels(np.zeros((40, 3), np.int8)), 40, 0, 0)
    (batch,) = list(loader)
    assert set((batch.inputs[:, 0, 0, 0] % 10).tolist()) == {0, 1}


def test_pooled_maps_are_the_mean_over_places():
    maps = np.random.default_rng(0).normal(size=(5, 2, 4, 3, 3)).astype(np.float16)
    assert pool_maps(maps, rows_at_once=2) == pytest.approx(
        maps.astype(np.float32).mean((3, 4), keepdims=True), abs=1e-6
    )


def test_without_choice_unknown_stays_unknown():
    targets, weights = weak_absents(LABELS, KnownLabels(LABELS), [0])
    assert weights is None
    assert np.array_equal(targets, LABELS)


def test_assume_absent_weighs_unknown_entries_only():
    targets, weights = weak_absents(LABELS, KnownLabels(LABELS, assume_absent=0.1), [0])
    assert (targets[LABELS == 0] == -1).all()
    assert np.array_equal(targets[LABELS != 0], LABELS[LABELS != 0])
    assert np.allclose(weights, np.where(LABELS == 0, 0.1, 1.0))


def test_sample_absent_draws_n_per_present_label():
    known = KnownLabels(LABELS, sample_absent=2, sample_absent_weight=0.5)
    targets, weights = weak_absents(LABELS, known, [0])
    drawn = (targets == -1) & (LABELS == 0)
    assert drawn.sum() == min(2 * (LABELS == 1).sum(), (LABELS == 0).sum())
    assert np.array_equal(weights == 0.5, drawn)
    again, _ = weak_absents(LABELS, known, [0])
    assert np.array_equal(targets, again)
