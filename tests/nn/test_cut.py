"""A backbone in two gives the map of the whole one, and trains what the whole one would."""

import pytest
import torch
from torch import nn

from fewtags.errors import UserError
from fewtags.nn.backbones import build_backbone
from fewtags.nn.cut import cut

SIDE = 96
IMAGES = torch.randn(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "until"),
    [
        ("lite0", "blocks.4"),
        ("test_resnet", "layer3.0"),
        ("test_efficientnet", "blocks.3"),
        ("test_convnext", "stages.2"),
        ("test_mambaout", "stages.2"),
    ],
)
def test_two_parts_give_the_map_of_the_whole(name, until):
    backbone = build_backbone(name, pretrained=name == "lite0").eval()
    with torch.no_grad():
        expected = backbone(IMAGES)
        frozen, trained = cut(backbone, stages=1, side=SIDE)
        made = trained(frozen(IMAGES))
    assert made.shape == expected.shape
    assert torch.allclose(made, expected, rtol=1e-3, atol=1e-4)
    assert frozen.name == f"{name}-until-{until}"


def test_what_is_trained_is_what_the_whole_backbone_trains():
    backbone = build_backbone("test_efficientnet", pretrained=False)
    frozen, trained = cut(backbone, stages=2, side=SIDE)
    backbone.train_last(2)
    wanted = {id(parameter) for parameter in backbone.parameters() if parameter.requires_grad}
    assert {id(parameter) for parameter in trained.parameters()} == wanted
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    assert all(module.training for module in trained.layers.modules() if isinstance(module, nn.BatchNorm2d))
    assert not any(module.training for module in frozen.layers.modules() if isinstance(module, nn.BatchNorm2d))


def test_the_frozen_part_is_known_by_its_weights_alone():
    backbone = build_backbone("test_resnet", pretrained=False)
    frozen, trained = cut(backbone, stages=1, side=SIDE)
    before = frozen.fingerprint()
    with torch.no_grad():
        next(trained.parameters()).add_(1)
    assert frozen.fingerprint() == before
    with torch.no_grad():
        next(frozen.parameters()).add_(1)
    assert frozen.fingerprint() != before


def test_a_network_that_is_no_sequence_is_refused():
    with pytest.raises(UserError, match=r"backbone test_vit: it does more than .* leave cache_frozen_stages out"):
        cut(build_backbone("test_vit", pretrained=False), stages=1, side=SIDE)


@pytest.mark.parametrize(("stages", "which"), [(0, "none"), (99, "all")])
def test_nothing_to_cut_is_refused(stages, which):
    with pytest.raises(
        UserError, match=f"trained_stages={stages}: {which} of the stages of test_resnet are trained"
    ):
        cut(build_backbone("test_resnet", pretrained=False), stages, side=SIDE)
