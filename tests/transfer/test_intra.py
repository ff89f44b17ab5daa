import numpy as np
import pytest
import torch

from fewtags.transfer import intra
from fewtags.transfer.intra import PairHead, intra_evidence, pair_loss, pair_rows, pair_targets
from tests.oracles import intra as oracle
from tests.oracles import losses as loss_oracle

IMAGES, CATEGORIES, SIZE = 4, 5, 6
KINDS = ["conditional", "both_known", "three_valued", "released"]


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def labels(seed=0):
    made = torch.randint(-1, 2, (IMAGES, CATEGORIES), generator=torch.Generator().manual_seed(seed))
    made[1] = 0  # an image of which nothing is known
    return made


def head(layers="paper", scores="shared"):
    return PairHead(SIZE, CATEGORIES, pair_size=7, pair_hidden=9, layers=layers, scores=scores).double()


def weights_of(module):
    layers = {
        "reduce": module.reduce,
        "asked": module.asked_half,
        "given": module.given_half,
        "extra": module.extra,
    }
    weights = {"score": module.score, "score_bias": module.score_bias}
    for name, layer in layers.items():
        if layer is not None:
            weights |= {name: layer.weight, f"{name}_bias": layer.bias}
    return {name: value.detach().numpy() for name, value in weights.items() if value is not None}


@pytest.mark.parametrize("layers", ["paper", "released"])
@pytest.mark.parametrize("scores", ["shared", "per_pair"])
@pytest.mark.parametrize("block", [2**22, 1])
def test_head_equals_pairs_one_by_one(layers, scores, block, monkeypatch):
    monkeypatch.setattr(intra, "CPU_BLOCK", block)  # 1: every row a block of its own
    module = head(layers, scores)
    module.score_bias.data.normal_()
    features = torch.randn(IMAGES, CATEGORIES, SIZE, dtype=torch.float64)
    images, given = torch.tensor([0, 0, 3, 2]), torch.tensor([1, 4, 0, 2])
    logits = module(features, images, given)
    assert logits.shape == (4, CATEGORIES)
    for row, (n, j) in enumerate(zip(images, given, strict=True)):
        for i in range(CATEGORIES):
            expected = oracle.pair_logit(
                features[n, i].numpy(), features[n, j].numpy(), i, int(j), weights_of(module), layers == "released"
            )
            assert logits[row, i].item() == pytest.approx(expected)


def test_blocks_give_the_same_gradient(monkeypatch):
    module = head("released", "per_pair")
    gradients = []
    for block in (2**22, 1):
        monkeypatch.setattr(intra, "CPU_BLOCK", block)
        features = torch.ones(IMAGES, CATEGORIES, SIZE, dtype=torch.float64).cumsum(1).requires_grad_()
        module.zero_grad()
        module(features, *pair_rows(labels(), "both_known")).square().sum().backward()
        gradients.append([features.grad] + [p.grad.clone() for p in module.parameters()])
    for whole, in_blocks in zip(*gradients, strict=True):
        assert torch.allclose(whole, in_blocks)


def test_released_head_is_symmetric():
    module = head("released", "per_pair")
    features = torch.randn(1, CATEGORIES, SIZE, dtype=torch.float64)
    logits = module(features, torch.zeros(CATEGORIES, dtype=torch.long), torch.arange(CATEGORIES))
    assert torch.allclose(logits, logits.T)


def test_no_rows_give_no_logits_and_a_loss_with_a_graph():
    module, nothing = head(), torch.zeros(0, dtype=torch.long)
    logits = module(torch.randn(IMAGES, CATEGORIES, SIZE, dtype=torch.float64), nothing, nothing)
    loss = pair_loss(logits, pair_targets(labels(), nothing, nothing))
    loss.backward()
    assert logits.shape == (0, CATEGORIES)
    assert loss.item() == 0
    assert all((p.grad == 0).all() for p in module.parameters())


def test_no_tensor_over_all_pairs_of_features():
    module, kept = head(), []
    features = torch.randn(IMAGES, CATEGORIES, SIZE, dtype=torch.float64, requires_grad=True)
    rows = pair_rows(torch.ones(IMAGES, CATEGORIES))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape[-1]) or t, lambda t: t):
        module(features, *rows)
    assert 2 * SIZE not in kept


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("known", ["some", "all", "none"])
def test_targets_equal_the_loop_and_rows_miss_no_used_pair(kind, known):
    y = {"some": labels(), "all": torch.where(labels() == 0, -1, labels()), "none": 0 * labels()}[known]
    images, given = pair_rows(y, kind)
    targets = pair_targets(y, images, given, kind)
    expected = np.zeros((IMAGES, CATEGORIES, CATEGORIES), int)
    for n in range(IMAGES):
        for i in range(CATEGORIES):
            for j in range(CATEGORIES):
                expected[n, j, i] = oracle.target(int(y[n, i]), int(y[n, j]), kind) if i != j else 0
    found = np.zeros_like(expected)
    found[images, given] = targets.numpy()
    assert (found == expected).all()


@pytest.mark.parametrize("kind", KINDS)
def test_targets_do_not_depend_on_the_rows_asked_for(kind):
    y = labels()
    images, given = pair_rows(y, "released")  # every row there is
    targets = pair_targets(y, images, given, kind)
    for n, j, row in zip(images.tolist(), given.tolist(), targets.tolist(), strict=True):
        assert row == [oracle.target(int(y[n, i]), int(y[n, j]), kind) if i != j else 0 for i in range(CATEGORIES)]


def test_conditional_rows_are_the_known_present():
    images, given = pair_rows(labels())
    assert (labels()[images, given] == 1).all()
    assert len(images) == (labels() == 1).sum()


@pytest.mark.parametrize("kind", ["asymmetric", "bce"])
def test_loss_is_the_mean_over_pairs_used(kind):
    y = labels()
    images, given = pair_rows(y)
    targets = pair_targets(y, images, given)
    logits = torch.randn(targets.shape, requires_grad=True)
    loss = pair_loss(logits, targets, kind, 1.0, 2.0, 0.05)
    losses = [
        loss_oracle.asymmetric(x.item(), t.item(), 1, 2, 0.05)
        if kind == "asymmetric"
        else loss_oracle.bce(x.item(), t)
        for x, t in zip(logits.flatten(), targets.flatten(), strict=True)
        if t != 0
    ]
    assert loss.item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    loss.backward()
    assert (logits.grad[targets == 0] == 0).all()


@pytest.mark.parametrize("targets_kind", KINDS)
@pytest.mark.parametrize("kind", ["mean", "sum"])
@pytest.mark.parametrize("self_evidence", [False, True])
def test_evidence_equals_the_loop_whatever_rows_are_scored(targets_kind, kind, self_evidence):
    y = labels()
    images, given = pair_rows(y, targets_kind)
    table = torch.rand(IMAGES, CATEGORIES, CATEGORIES)
    found, has = intra_evidence(table[images, :, given], images, given, y, kind, self_evidence)
    expected = oracle.evidence(lambda n, i, j: table[n, i, j].item(), y.tolist(), kind, self_evidence)
    for n in range(IMAGES):
        for i in range(CATEGORIES):
            assert has[n, i].item() == (expected[n][i] is not None)
            assert found[n, i].item() == pytest.approx(expected[n][i] or 0.0, abs=1e-6)


def test_a_known_label_does_not_vouch_for_itself():
    y = torch.tensor([[1, 0, -1]])
    images, given = pair_rows(y)
    _, has = intra_evidence(torch.ones(1, 3), images, given, y)
    assert has.tolist() == [[False, True, True]]


def test_gradient_reaches_only_what_is_evidence():
    y = labels()
    images, given = pair_rows(y, "released")
    probabilities = torch.rand(len(images), CATEGORIES, requires_grad=True)
    evidence, _ = intra_evidence(probabilities, images, given, y)
    evidence.sum().backward()
    counts = (y[images, given] == 1).unsqueeze(1) & (given.unsqueeze(1) != torch.arange(CATEGORIES))
    assert ((probabilities.grad != 0) == counts).all()
