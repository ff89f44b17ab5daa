"""A backbone in two: the stages that stay frozen, and those that are trained.

What frozen stages make of an image never changes. Cached, it saves the larger part of an epoch's work.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewtags.errors import UserError
from fewtags.nn.backbones import Backbone, fingerprint_of, frozen_until

Layers = dict[str, nn.Module]


class FrozenStages(nn.Module):
    """Images (B, 3, S, S) → what the trained stages read. To the cache it is a backbone like any other."""

    def __init__(self, layers: Layers, backbone: Backbone):
        super().__init__()
        self.name = f"{backbone.name}-until-{list(layers)[-1]}"
        self.mean, self.std = backbone.mean, backbone.std
        self.layers = nn.Sequential(*layers.values())

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)  # type: ignore[no-any-return]

    def fingerprint(self) -> str:
        return fingerprint_of(self.layers)


class TrainedStages(nn.Module):
    """What `FrozenStages` gives → (B, channels, H, W), the backbone's map. Its layers are the backbone's own."""

    def __init__(self, layers: Layers, backbone: Backbone):
        super().__init__()
        self.layers = nn.Sequential(*layers.values())
        self.layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster on a CPU
        self.to_map = backbone.to_map

    def forward(self, maps: Tensor) -> Tensor:
        return self.to_map(self.layers(maps.contiguous(memory_format=torch.channels_last)))


def cut(backbone: Backbone, stages: int, side: int) -> tuple[FrozenStages, TrainedStages]:
    """Before the last `stages` stages of a backbone that reads images of `side` pixels."""
    layers = _layers(backbone, side)
    order = [path for path, _ in backbone.network.named_modules()]
    boundary = frozen_until(backbone.network, stages, backbone.name)
    before = {path: layer for path, layer in layers.items() if order.index(path) < boundary}
    after = {path: layer for path, layer in layers.items() if path not in before}
    if not before or not after:
        which = "all" if after else "none"
        raise UserError(
            f"trained_stages={stages}: {which} of the stages of {backbone.name} are trained, so nothing "
            "can be cut; choose another number, or leave cache_frozen_stages out"
        )
    return FrozenStages(before, backbone), TrainedStages(after, backbone)


@torch.no_grad()
def _layers(backbone: Backbone, side: int) -> Layers:
    """The network's layers in the order it applies them, up to its map; tried on an image of noise."""
    training = backbone.training
    backbone.eval()
    image = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(0))
    image = image.to(next(backbone.parameters()).device)
    expected = backbone.network.forward_features(image)  # type: ignore[operator]
    layers: Layers = {}
    reached, given = 0, image
    for path, layer in _parts(backbone.network):
        try:
            given = layer(given)
        except Exception:  # a layer that is applied in another way: what was reached before it counts
            break
        layers[path] = layer
        if given.shape == expected.shape and torch.allclose(given, expected, rtol=1e-4, atol=1e-5):
            reached = len(layers)
    backbone.train(training)
    if not reached:
        raise UserError(
            f"backbone {backbone.name}: it does more than to apply its layers one after another, so its frozen "
            "stages cannot be cached; leave cache_frozen_stages out, or choose another backbone"
        )
    return dict(list(layers.items())[:reached])


def _parts(network: nn.Module) -> list[tuple[str, nn.Module]]:
    """The network's parts; of a sequence, which often holds all stages, the parts of that."""
    parts: list[tuple[str, nn.Module]] = []
    for name, part in network.named_children():
        inner = list(part.named_children()) if isinstance(part, nn.Sequential) else []
        parts += [(f"{name}.{path}", layer) for path, layer in inner] or [(name, part)]
    return parts
