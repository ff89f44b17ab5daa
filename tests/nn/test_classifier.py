import numpy as np
import torch

from fewtags.nn.classifier import CategoryClassifier, linear_layer
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


def test_a_linear_layer_starts_undecided():
    assert torch.equal(linear_layer(6, 3)(torch.randn(2, 6)), torch.zeros(2, 3))
