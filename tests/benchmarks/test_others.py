"""The single benchmarks run, compare like with like, and their figures are kept."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from benchmarks import compiled, loading, metrics, prototypes, side_by_side
from benchmarks.record import Figure, alternating, read, record, said
from benchmarks.tables import others
from fewtags.metrics import evaluate
from fewtags.nn.backbones import build_backbone


def test_metrics_of_coco_take_less_than_two_seconds():
    given = metrics.fabricated()
    assert given[0].shape == (40_000, 80)
    started = time.process_time()
    scores = evaluate(*given)
    assert time.process_time() - started < 2
    assert 0 < scores["mAP"] < 100


def test_metrics_benchmark_compares_equal_figures():
    (figure,) = metrics.figures(images=300, categories=5, rounds=1)
    assert figure.ours > 0
    assert figure.target == 1.0


def test_prototypes_benchmark_has_an_inertia_near_scikit_learns():
    time_figure, inertia = prototypes.figures(images=400, categories=4, size=12, count=5, rounds=1)
    assert time_figure.ours > 0
    assert 0.7 < inertia.ratio < 1.1


def test_inertia_equals_the_loop():
    features, category = prototypes.fabricated(100, 3, 6)
    centres = prototypes.ours(features, category, 3, 2)
    expected = sum(
        min(float((x - centre).square().sum()) for centre in centres[c] if centre.any())
        for x, c in zip(features, category.tolist(), strict=True)
    )
    assert prototypes.inertia(features, category, centres) == pytest.approx(expected, rel=1e-4)


def test_fabricated_features_are_as_many_as_a_data_set_has():
    features, category = prototypes.fabricated(10_000, 80, 4)
    counts = torch.bincount(category, minlength=80)
    assert int(counts.min()) >= 1
    assert counts[0] > 20 * counts[-1]
    assert len(features) == pytest.approx(0.036 * 10_000 * 80, rel=0.1)
    assert torch.allclose(features.norm(dim=1), torch.ones(len(features)), atol=1e-5)


def test_loading_counts_every_image(tmp_path):
    names = loading.write_photographs(tmp_path, 3, (40, 30))
    assert loading.plain_pillow(tmp_path, names, 16) == 3
    transform = loading.evaluation_transform(16, loading.MEAN, loading.STD)
    data = loading.Loaded(tmp_path, names, transform)
    assert loading.loaded(data, 0) == 3
    assert data[0].shape == (3, 16, 16)
    found = loading._beside(tmp_path, names, 16, 1, plain=5.0, what="JPEG")
    assert len(found) == 3
    assert all(figure.ours > 0 and figure.unit == "images/s" for figure in found)


def test_second_run_reads_what_the_first_computed():
    backbone = build_backbone("test_resnet", pretrained=False)
    figure = loading.caching(backbone, count=5, side=64)
    assert figure.ours > figure.rival
    assert loading.inference(backbone, count=2, side=64).ours > 0


def test_running_again_replaces_a_benchmarks_own_figures(tmp_path, capsys):
    out = tmp_path / "others.csv"
    kept = Figure("metrics", "all", 0.4, None, "", "s", 1.0)
    record([kept, Figure("loading", "old", 1.0, 2.0, "plain", "images/s")], out)
    record([Figure("loading", "new", 3.0, 2.0, "plain", "images/s")], out)
    assert [figure.what for figure in read(out)] == ["all", "new"]
    assert read(out)[0] == kept
    assert "all: 0.4 s, target ≤ 1 s: met" in capsys.readouterr().out
    assert [row[0].text for row in others(read(out)).rows] == ["all", "new"]


def test_targets_are_of_the_ratio_or_of_the_figure_itself():
    assert Figure("prototypes", "k-means", 1.0, 4.0, "loop", "s", 0.2, of_ratio=True).met is False
    assert Figure("prototypes", "k-means", 1.0, 6.0, "loop", "s", 0.2, of_ratio=True).met is True
    assert Figure("metrics", "all", 1.2, 6.0, "loop", "s", 1.0).met is False
    assert Figure("loading", "decoding", 9.0, None, "", "images/s", 8.0, "at least").met is True
    assert Figure("loading", "decoding", 9.0, None, "", "images/s").met is None
    assert said(Figure("x", "it", 1.0, 4.0, "loop", "s", 0.2, of_ratio=True)) == (
        "it: 1 s (loop 4 s, 0.25×), target ≤ 0.2×: MISSED"
    )


def test_contenders_take_turns():
    order: list[str] = []
    seconds, results = alternating({name: lambda name=name: order.append(name) for name in "ab"}, rounds=2)  # type: ignore[misc]
    assert order == ["a", "b", "a", "b"]
    assert set(seconds) == set(results) == {"a", "b"}
    assert np.isfinite(list(seconds.values())).all()


def test_compiled_heads_and_backbones_give_the_same():
    """Traced, but run as it is: machine code would take a minute and a C++ compiler."""
    for case in (
        compiled.heads(6, 2, tiny=True, backend="eager"),
        compiled.inference("test_resnet", 32, 2, "eager"),
    ):
        step, once = compiled.compared(*case, rounds=1)
        assert step.rival_name == "not compiled"
        assert step.ours > 0
        assert once.ours > 0


def test_both_share_backbone_and_process():
    found = side_by_side.figure(6, 2, 7, rounds=1, scale="tiny")
    assert found.ours > 0
    assert found.rival_name == "the bare backbone"
    assert found.target is None


def test_figures_without_a_unit_are_read_back(tmp_path):
    figure = Figure("prototypes", "inertia", 2.0, 3.0, "rival", "", 1.0, of_ratio=True)
    record([figure], tmp_path / "others.csv")
    assert read(tmp_path / "others.csv") == [figure]
