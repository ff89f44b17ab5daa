import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from fewtags.transfer.clustering import SEEDINGS, _means, as_points, category_prototypes, clusters
from fewtags.transfer.prototypes import ContrastQueue, InstanceBank, Prototypes
from tests.oracles import prototypes as oracle

CATEGORIES, SIZE = 4, 6


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def blobs(points=400, centres=8, size=5, seed=0, spread=0.6):
    rng = np.random.default_rng(seed)
    middle = rng.normal(size=(centres, size)) * 2
    return (middle[rng.integers(centres, size=points)] + spread * rng.normal(size=(points, size))).astype(
        np.float32
    )


def inertia(points, centres):
    return ((points[:, None] - centres[None]) ** 2).sum(-1).min(1).sum()


def clustered(points, count, metric, seed):
    """Centres (count, D) of points (n, D)."""
    given = as_points(torch.from_numpy(points)[None], torch.ones(1, len(points), dtype=torch.bool))
    draws = torch.rand(1, SEEDINGS, count, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = clusters(given, count, metric, draws)
    assert found.used.all()
    return found.values[0].numpy()


@pytest.mark.parametrize("seed", range(4))
def test_euclidean_clusters_are_as_tight_as_scikit_learns(seed):
    points = blobs(seed=seed)
    ours = clustered(points, 8, "euclidean", seed)
    theirs = KMeans(8, n_init=1, random_state=seed).fit(points)
    assert inertia(points, ours) <= 1.15 * theirs.inertia_
    best = KMeans(8, n_init=10, random_state=0).fit(points)
    assert inertia(points, ours) <= 1.25 * best.inertia_


def test_spherical_clusters_are_at_rest_and_tight():
    points = torch.nn.functional.normalize(torch.from_numpy(blobs()), dim=1)
    centres = torch.from_numpy(clustered(points.numpy(), 8, "spherical", 0))
    assert torch.allclose(centres.norm(dim=1), torch.ones(8), atol=1e-5)
    nearest = (points @ centres.T).argmax(1)
    for k in range(8):
        mean = points[nearest == k].mean(0)
        assert torch.allclose(centres[k], mean / mean.norm(), atol=1e-4)
    reference = KMeans(8, n_init=5, random_state=0).fit(points.numpy())
    assert inertia(points.numpy(), centres.numpy()) <= 1.25 * inertia(points.numpy(), reference.cluster_centers_)


@pytest.mark.parametrize("metric", ["spherical", "euclidean"])
def test_prototypes_of_all_categories(metric):
    features = torch.randn(70, SIZE)
    category = torch.tensor([0] * 50 + [1] * 3 + [3] * 17)
    shuffle = torch.randperm(70)
    vectors, counts = category_prototypes(features[shuffle], category[shuffle], CATEGORIES, 5, metric, seed=1)
    assert vectors.shape == (CATEGORIES, 5, SIZE)
    assert counts.tolist() == [5, 3, 0, 5]
    filled = torch.arange(5) < counts.unsqueeze(1)
    assert torch.allclose(vectors.norm(dim=2)[filled], torch.ones(int(counts.sum())), atol=1e-5)
    assert (vectors[~filled] == 0).all()
    few = torch.nn.functional.normalize(features[50:53], dim=1)
    assert torch.allclose((vectors[1, :3] @ few.T).amax(1), torch.ones(3), atol=1e-5)


def test_prototypes_are_seeded_and_do_not_depend_on_other_categories():
    features, category = torch.randn(80, SIZE), torch.arange(80) % 2
    both, _ = category_prototypes(features, category, 2, 5, seed=3)
    again, _ = category_prototypes(features, category, 2, 5, seed=3)
    alone, _ = category_prototypes(features[1::2], category[1::2], 2, 5, seed=3)
    other, _ = category_prototypes(features, category, 2, 5, seed=4)
    assert torch.equal(both, again)
    assert torch.allclose(both[1], alone[1])
    assert not torch.allclose(both, other)


def test_long_features_are_clustered_as_tightly_as_scikit_learns():
    """Longer and more than what is sketched: found by sketches of some, finished with all, at rest in the end."""
    points = blobs(points=1500, centres=10, size=300, spread=1.5)
    ours = clustered(points, 10, "euclidean", 0)
    assert inertia(points, ours) <= 1.01 * KMeans(10, n_init=3, random_state=0).fit(points).inertia_
    nearest = ((points[:, None] - ours[None]) ** 2).sum(-1).argmin(1)
    for k in range(10):
        assert np.allclose(ours[k], points[nearest == k].mean(0), atol=1e-3)


def test_rounding_does_not_reorder_prototypes():
    """Several tries find the same clusters in another order: the last digit must not say which is taken."""
    features, category = torch.randn(40, SIZE), torch.arange(40) % 4
    exact, _ = category_prototypes(features, category, 4, 2)
    for seed in range(5):
        noise = 1e-7 * torch.randn(features.shape, generator=torch.Generator().manual_seed(seed))
        rounded, _ = category_prototypes(features * (1 + noise), category, 4, 2)
        assert torch.allclose(rounded, exact, atol=1e-4)


def test_categories_clustered_together_get_what_each_gets_alone():
    sizes = [5, 40, 44, 50, 200, 3, 47]
    category = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    features = torch.randn(len(category), SIZE)
    together, _ = category_prototypes(features, category, len(sizes), 6, seed=2)
    for index in range(len(sizes)):
        mine = category == index
        alone, _ = category_prototypes(features[mine], category[mine], len(sizes), 6, seed=2)
        assert torch.allclose(together[index], alone[index], atol=1e-5)


def test_a_centre_that_lost_its_points_moves_to_the_worst_served():
    points = as_points(torch.tensor([[[0.0], [1.0], [9.0], [20.0]]]), torch.ones(1, 4, dtype=torch.bool))
    nearest = torch.tensor([[0, 0, 0, 1]])
    distance = torch.tensor([[0.0, 1.0, 81.0, 0.0]])
    used = torch.tensor([[True, True, True, False]])
    means = _means(points, nearest, distance, used)
    assert means[0, :3, 0].tolist() == pytest.approx([10 / 3, 20.0, 9.0])


def test_equal_features_make_one_prototype():
    vectors, counts = category_prototypes(torch.ones(9, SIZE), torch.zeros(9, dtype=torch.long), 1, 4)
    assert counts.tolist() == [1]
    assert torch.allclose(vectors[0, 0], torch.full((SIZE,), SIZE**-0.5))


def test_no_features_at_all():
    vectors, counts = category_prototypes(torch.zeros(0, SIZE), torch.zeros(0, dtype=torch.long), 2, 3)
    assert counts.tolist() == [0, 0]
    assert (vectors == 0).all()


@pytest.mark.parametrize("kind", ["mean", "max"])
def test_similarity_equals_cosines_one_by_one(kind):
    module = Prototypes(CATEGORIES, SIZE, count=5)
    category = torch.tensor([0] * 30 + [1] * 3 + [3])
    module.update(torch.randn(34, SIZE), category, "spherical", 0)
    features = torch.randn(3, CATEGORIES, SIZE)
    found = module.similarity(features, kind)
    for n in range(3):
        for c in range(CATEGORIES):
            kept = module.vectors[c, : module.counts[c]].tolist()
            expected = oracle.similarity(features[n, c].tolist(), kept, kind)
            assert found[n, c].item() == pytest.approx(expected, abs=1e-5)
    assert module.available.tolist() == [True, True, False, True]
    every = torch.arange(CATEGORIES).repeat(3)
    assert torch.allclose(module.similarity_of(features.flatten(0, 1), every, kind), found.flatten(), atol=1e-6)


def test_prototypes_are_saved():
    module, copy = Prototypes(CATEGORIES, SIZE, 3), Prototypes(CATEGORIES, SIZE, 3)
    module.update(torch.randn(20, SIZE), torch.arange(20) % 4)
    copy.load_state_dict(module.state_dict())
    assert torch.equal(copy.vectors, module.vectors)
    assert copy.available.all()


def test_bank_keeps_the_newest_present_features():
    bank, lists = InstanceBank(CATEGORIES, SIZE, capacity=3), [oracle.Newest(3) for _ in range(CATEGORIES)]
    for _ in range(5):
        features, labels = torch.randn(5, CATEGORIES, SIZE), torch.randint(-1, 2, (5, CATEGORIES))
        labels[:, 2] = -1
        labels[:, 3] = 1  # more in a batch than the bank holds
        bank.push(features, labels)
        for n in range(5):
            for c in range(CATEGORIES):
                if labels[n, c] == 1:
                    lists[c].push(features[n, c].tolist())
        asked = torch.randn(2, CATEGORIES, SIZE)
        found = bank.similarity(asked)
        for n in range(2):
            for c in range(CATEGORIES):
                expected = oracle.similarity(asked[n, c].tolist(), lists[c].features, "mean")
                assert found[n, c].item() == pytest.approx(expected, abs=1e-5)
    assert bank.available.tolist() == [True, True, False, True]
    assert (bank.ring[:, -1] == 0).all()


def as_sorted(vectors):
    return sorted(tuple(round(x, 4) for x in vector) for vector in vectors)


def test_queue_keeps_the_newest_of_both_kinds():
    queue = ContrastQueue(CATEGORIES, SIZE, total=CATEGORIES * 6)
    lists = {(c, sign): oracle.Newest(3) for c in range(CATEGORIES) for sign in (1, -1)}
    assert (queue.partners()[1] == 0).all()
    for _ in range(4):
        features, labels = torch.randn(5, CATEGORIES, SIZE), torch.randint(-1, 2, (5, CATEGORIES))
        labels[:, 2] = 0
        queue.push(features, labels)
        for n in range(5):
            for c in range(CATEGORIES):
                if labels[n, c] != 0:
                    unit = torch.nn.functional.normalize(features[n, c], dim=0)
                    lists[c, int(labels[n, c])].push(unit.tolist())
        partners, partner_labels = queue.partners()
        assert partners.shape == (CATEGORIES, 6, SIZE)
        for (c, sign), newest in lists.items():
            kept = partners[c][partner_labels[c] == sign].tolist()
            assert as_sorted(kept) == as_sorted(newest.features)


def test_an_empty_queue_takes_no_room():
    queue = ContrastQueue(CATEGORIES, SIZE, total=0)
    queue.push(torch.randn(2, CATEGORIES, SIZE), torch.ones(2, CATEGORIES))
    assert queue.partners()[0].shape == (CATEGORIES, 0, SIZE)
