"""Folding batch norms: the same map, and plain networks where folding would be wrong."""

import pytest
import torch
from torch import nn

from fewtags.nn.backbones import build_backbone
from fewtags.nn.inference import fastest, fold_batch_norms

IMAGES = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def with_statistics(network: nn.Module) -> nn.Module:
    """Random batch-norm statistics, so that folding has something to get wrong."""
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 2)
            module.bias.data.normal_()
    return network


def norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


@pytest.mark.parametrize("name", ["test_resnet", "test_efficientnet", "test_vit", "lite0"])
def test_the_map_is_the_same(name):
    backbone = with_statistics(build_backbone(name, pretrained=False)).eval()
    quick = fastest(backbone, IMAGES)
    with torch.no_grad():
        expected = backbone(IMAGES)
        torch.testing.assert_close(quick(IMAGES), expected, rtol=0, atol=1e-3 * float(expected.abs().max()))
    before, after = norms(backbone), norms(quick)
    assert after <= 0.2 * before  # test_resnet keeps one, whose convolution ends a block of its own


class Misleading(nn.Module):
    """Registers a norm after a convolution and applies it before."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)
        self.norm = nn.BatchNorm2d(3)

    def forward(self, images):
        return self.conv(self.norm(images).relu())


def test_where_folding_would_be_wrong_the_network_stays_plain():
    network = with_statistics(Misleading()).eval()
    quick = fastest(network, IMAGES)
    with torch.no_grad():
        torch.testing.assert_close(quick(IMAGES), network(IMAGES))
        assert (fold_batch_norms(network)(IMAGES) - quick(IMAGES)).abs().max() > 0.1
