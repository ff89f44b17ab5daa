import numpy as np
import torch

from fewtags.nn.classifier import CategoryClassifier
from tests.oracles import label_graph as oracle


def test_equals_the_loop():
    torch.manual_seed(0)
    module = CategoryClassifier(4, 5, hidden=7, dropout=0.5).double().eval()
    module.bias.data.normal_()
    states, features = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    weights = [p.detach().numpy() for p in (module.join.weight, module.join.bias, module.rows, module.bias)]
    found = module(states, features).detach().numpy()
    assert found.shape == (3, 4)
    for image in range(3):
        expected = oracle.classifier(states[image].numpy(), features[image].numpy(), *weights)
        assert np.allclose(found[image], expected)


def test_starting_small_scales_the_scores():
    torch.manual_seed(0)
    module = CategoryClassifier(4, 5)
    states, features = torch.randn(2, 3, 4, 5)
    before = module(states, features)
    module.start_small()
    assert torch.allclose(module(states, features), 0.1 * before, atol=1e-6)


def test_dropout_only_while_training():
    torch.manual_seed(0)
    module = CategoryClassifier(4, 5, dropout=0.5)
    states, features = torch.randn(2, 3, 4, 5)
    assert not torch.equal(module(states, features), module(states, features))
    module.eval()
    assert torch.equal(module(states, features), module(states, features))


def test_it_can_start_near_given_scores():
    module = CategoryClassifier(3, 5, hidden=7)
    module.start_small()
    module.start_at(torch.tensor([-3.0, 0.0, 3.0]))
    scores = module(torch.randn(4, 3, 5), torch.randn(4, 3, 5))
    assert torch.allclose(scores, torch.tensor([-3.0, 0.0, 3.0]).expand(4, 3), atol=0.4)
