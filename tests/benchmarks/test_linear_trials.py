import numpy as np
import pytest
import torch

from benchmarks import linear_trials, place_trials, training_trials
from benchmarks.linear_trials import Layer, co_occurrence, likeness, precision_at, surest
from benchmarks.training_trials import Way, altered, beta, step_loss


def test_the_surest_of_each_category_are_as_many_as_its_base_rate_says():
    known = torch.zeros(100, 2)
    known[:20, 0] = torch.tensor([1.0] * 10 + [-1.0] * 10)
    known[:20, 1] = torch.tensor([1.0] * 5 + [-1.0] * 15)
    filled = surest(known, 0.5)(torch.randn(100, 2))
    rates = [(10 + 20 * 0.375) / 40, (5 + 20 * 0.375) / 40]
    assert filled.sum(0).tolist() == [int(0.5 * rate * 80) for rate in rates]
    assert not filled[known != 0].any()


def test_co_occurrence_speaks_where_another_label_is_known_present():
    rng = np.random.default_rng(0)
    known = torch.from_numpy(rng.choice([-1, 0, 1], (300, 3), p=[0.4, 0.2, 0.4])).float()
    known[:, 1] = torch.where((known[:, 0] != 0) & (known[:, 1] != 0), known[:, 0], known[:, 1])  # 1 goes with 0
    evidence, reached = co_occurrence(known)
    assert reached.tolist() == [
        [float(any(row[j] == 1 for j in range(3) if j != i)) for i in range(3)] for row in known.tolist()
    ]
    given = (known[:, 0] == 1) & (known[:, 2] != 1)
    assert evidence[given, 1].mean() > 1


def test_likeness_finds_the_images_that_look_the_same():
    torch.manual_seed(0)
    group = torch.arange(60) % 2
    features = torch.randn(60, 20) + 4 * group.unsqueeze(1)
    known = torch.zeros(60, 1)
    known[:20, 0] = 2.0 * group[:20] - 1
    scores = likeness(features, known)[20:, 0]
    assert scores[group[20:] == 1].min() > scores[group[20:] == 0].max()


def test_precision_at_a_recall_counts_down_to_the_last_label_needed():
    truth = np.array([True, False, True, False, False, True])
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    assert [precision_at(recall, truth, scores) for recall in (0.2, 1 / 3, 0.5, 1.0)] == [1, 1, 2 / 3, 0.5]


def test_altered_features_are_the_same_on_average():
    draw, views = torch.Generator().manual_seed(0), torch.tensor([[2.0, -4.0], [4.0, 0.0]]).expand(20_000, 2, 2)
    for way in (Way(), Way(dropout=0.5), Way(noise=1.0), Way(blend_views=True)):
        features = altered(views, torch.tensor([1.0, 2.0]), way, draw)
        assert features.mean(0) == pytest.approx([3.0, -2.0], abs=0.1)
    assert altered(views, torch.ones(2), Way(blend_views=True), draw)[:, 0].std() < 0.9  # of single views: 1


def test_a_mixture_of_two_images_learns_the_known_labels_of_both():
    layer = Layer(torch.randn(1, 3, 2, generator=torch.Generator().manual_seed(0)), torch.zeros(1, 1, 2))
    views, labels = torch.eye(3).unsqueeze(1), torch.tensor([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
    loss = step_loss(layer, views, labels, torch.ones(3), Way(mixup=1.0), torch.Generator().manual_seed(5))
    draw = torch.Generator().manual_seed(5)
    torch.randint(1, (3,), generator=draw), torch.randint(1, (3,), generator=draw)
    partner, share = torch.randperm(3, generator=draw).tolist(), beta(1.0, draw)
    assert partner != [0, 1, 2]
    expected = 0.0
    for weight, of in ((share, [0, 1, 2]), (1 - share, partner)):
        losses = []
        for image in range(3):
            mixed = share * layer.weight[0, image] + (1 - share) * layer.weight[0, partner[image]]
            for score, label in zip(mixed.tolist(), labels[of[image]].tolist(), strict=True):
                losses += [np.log1p(np.exp(-label * score))] if label else []
        expected += weight * sum(losses) / len(losses)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_shares_of_mixtures_are_drawn_from_beta(alpha):
    draw = torch.Generator().manual_seed(0)
    shares = np.array([beta(alpha, draw) for _ in range(4000)])
    assert shares.mean() == pytest.approx(0.5, abs=0.03)
    assert shares.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.06)


@pytest.mark.parametrize(
    ("trial", "count"),
    [(linear_trials.one_seed, 32), (place_trials.one_seed, 25), (training_trials.one_seed, 14)],
)
def test_it_runs_and_scores_every_trial(trial, count, colours, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("FEWTAGS_CACHE", str(tmp_path))
    monkeypatch.setattr(linear_trials, "EPOCHS", 3)
    monkeypatch.setattr(linear_trials, "CONFIDENCE", 0.3)
    assert (
        linear_trials.main(
            [str(colours), "--known", "0.6", "--seeds", "0", "--limit", "36", "--development", "12"], trial
        )
        == 0
    )
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == count
    assert all(0 < float(value) <= 100 for _, value in rows)
