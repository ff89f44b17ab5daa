"""What speaks for an unknown label, by plain loops; and what a run keeps of it."""

import numpy as np
import pytest
import torch

from fewtags.completion import kept as kept_module
from fewtags.completion.evidence import look, most_similar
from fewtags.completion.kept import Keeper, read_kept
from fewtags.labels.table import LabelTable
from tests.methods.test_methods import CATEGORIES, IMAGES, batch_of, make, with_prototypes
from tests.transfer.test_plain_first import ready


def cosine(a, b) -> float:
    a, b = np.array(a.tolist()), np.array(b.tolist())
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def seen_by(method, batch):
    outputs = method.eval()(batch.inputs)
    return look(method, outputs, batch.labels), outputs


def test_evidence_within_an_image_is_the_mean_over_its_known_labels():
    batch = batch_of()
    method = with_prototypes(make("hst", threshold_labels="all"), batch)
    seen, outputs = seen_by(method, batch)
    assert np.allclose(seen.logits, outputs["logits"].detach())
    rows = {(i, c): p for i, c, p in zip(*seen.witnesses, strict=True)}
    assert len(rows) == (batch.labels == 1).sum()
    with torch.no_grad():
        for image in range(IMAGES):
            known = torch.nonzero(batch.labels[image] == 1).flatten().tolist()
            for given in known:
                arguments = torch.tensor([image]), torch.tensor([given]), batch.labels, method.tagger.adjacency
                expected = torch.sigmoid(method.intra.pair_logits(0, outputs["features"], *arguments))[0]
                assert np.allclose(rows[image, given], expected, atol=1e-5)
            for asked in range(CATEGORIES):
                said = [rows[image, given][asked] for given in known if given != asked]
                if said:
                    assert seen.intra[image, asked] == pytest.approx(np.mean(said), abs=1e-5)
                else:
                    assert np.isnan(seen.intra[image, asked])


def test_similarity_is_the_mean_cosine_with_the_prototypes():
    batch = batch_of()
    method = with_prototypes(make("hst", threshold_labels="all", prototype_similarity="mean"), batch)
    seen, outputs = seen_by(method, batch)
    reference = method.cross.references[0]
    features = outputs["features"].detach().numpy()
    for image in range(IMAGES):
        for category in range(CATEGORIES):
            count = int(reference.counts[category])
            if not count:
                assert np.isnan(seen.cross[image, category])
                continue
            vectors = reference.vectors[category, :count].numpy()
            expected = np.mean([cosine(features[image, category], vector) for vector in vectors])
            assert seen.cross[image, category] == pytest.approx(expected, abs=1e-5)


def test_the_most_similar_images_are_those_whose_likeness_is_the_evidence():
    method, batch = ready()
    seen, outputs = seen_by(method, batch)
    likeness = outputs["likeness"].detach().numpy()
    assert np.array_equal(seen.cross, likeness, equal_nan=True)
    gallery = torch.zeros(CATEGORIES, IMAGES, seen.features.shape[2])
    for category in range(CATEGORIES):
        known = torch.nonzero(batch.labels[:, category] == 1).flatten()
        gallery[category, : len(known)] = seen.features[known, category]
        compared = outputs["compared"].detach()
        said = (compared @ compared[known].T).mean(1).numpy()  # by a category's known images, one by one
        order = np.argsort(said, kind="stable")
        assert np.allclose(np.sort(likeness[:, category]), likeness[order, category], atol=1e-4)
    places, cosines = most_similar(seen.features, gallery, 1)
    for image, category in torch.nonzero(batch.labels == 1).tolist():
        own = torch.nonzero(batch.labels[:, category] == 1).flatten().tolist().index(image)
        assert places[image, category, 0] == own  # nothing is more like an image than itself
        assert cosines[image, category, 0] == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("name", ["plain", "ssgrl", "hst"])
def test_nothing_known_or_no_transfer_is_no_evidence(name):
    nothing = np.zeros((IMAGES, CATEGORIES), np.int8)
    batch = batch_of(nothing)
    seen, _ = seen_by(make(name, labels=nothing), batch)
    assert np.isnan(seen.intra).all()
    assert np.isnan(seen.cross).all()
    assert len(seen.witnesses.image) == 0
    assert np.isfinite(seen.logits).all()


def test_most_similar_by_plain_loops():
    generator = torch.Generator().manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(4, 3, 5, generator=generator), dim=-1)
    gallery = torch.nn.functional.normalize(torch.randn(3, 6, 5, generator=generator), dim=-1)
    gallery[1, 2:] = 0
    gallery[2] = 0
    places, cosines = most_similar(features, gallery, 3)
    for image in range(4):
        for category, filled in ((0, 6), (1, 2), (2, 0)):
            own = [cosine(features[image, category], gallery[category, k]) for k in range(filled)]
            order = sorted(range(filled), key=lambda k: -own[k])[:3]
            assert places[image, category].tolist() == order + [-1] * (3 - len(order))
            assert np.allclose(cosines[image, category][: len(order)], [own[k] for k in order], atol=2e-3)


def kept_run(tmp_path, method, batch, held, source=None):
    labels = batch.labels.numpy().astype(np.int8)
    names = tuple(f"{row}.jpg" for row in range(IMAGES))
    table = LabelTable(names, tuple("abcdefghijklmnop"[:CATEGORIES]), labels, ("train",) * IMAGES, source=source)
    keeper = Keeper(method.eval(), table, held, seed=0)
    with torch.no_grad():
        keeper.walk([(batch, method(batch.inputs))])
    keeper.write(tmp_path)
    return read_kept(tmp_path)


def test_a_run_keeps_its_held_out_labels_with_scores_and_known_features(tmp_path):
    batch = batch_of()
    method = with_prototypes(make("hst", threshold_labels="all"), batch)
    held = np.zeros((IMAGES, CATEGORIES), np.int8)
    places = np.argwhere(batch.labels.numpy() == 0)[:5]
    held[places[:, 0], places[:, 1]] = [1, -1, 1, 1, -1]
    kept = kept_run(tmp_path, method, batch, held)
    seen, outputs = seen_by(method, batch)
    assert kept.held.image == [f"{row}.jpg" for row, _ in places]
    assert kept.held.present.tolist() == [True, False, True, True, False]
    assert np.array_equal(kept.held.entries.category, places[:, 1])
    assert np.allclose(kept.held.entries.logit, seen.logits[places[:, 0], places[:, 1]], atol=1e-6)
    assert np.allclose(kept.held.entries.intra, seen.intra[places[:, 0], places[:, 1]], atol=1e-6, equal_nan=True)
    features = outputs["features"].detach().numpy()
    for category in range(CATEGORIES):
        known = [f"{row}.jpg" for row in np.flatnonzero(batch.labels[:, category].numpy() == 1)]
        found = [name for name in kept.gallery.images[category] if name]
        assert sorted(found) == sorted(known)
        for slot, name in enumerate(found):
            own = features[int(name.removesuffix(".jpg")), category]
            assert cosine(kept.gallery.features[category, slot].numpy(), own) == pytest.approx(1, abs=1e-3)


def test_few_known_images_of_each_category_are_kept_whatever_the_order(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_module, "MOST_A_CATEGORY", 2)
    batch = batch_of()
    method = with_prototypes(make("hst", threshold_labels="all"), batch)
    kept = kept_run(tmp_path, method, batch, None)
    present = (batch.labels == 1).sum(0).numpy()
    assert (kept.gallery.images != "").sum(1).tolist() == np.minimum(present, 2).tolist()
    assert len(kept.held.entries) == 0


def test_completed_labels_do_not_judge_a_model(tmp_path):
    batch = batch_of()
    held = np.zeros((IMAGES, CATEGORIES), np.int8)
    held[0] = 1
    source = np.full(held.shape, "given", dtype=object)
    source[0, 1:] = "completed"
    kept = kept_run(tmp_path, make("plain"), batch, held, source)
    assert kept.held.entries.category.tolist() == [0]
    assert kept.gallery is None
