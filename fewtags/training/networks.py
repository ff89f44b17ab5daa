"""The networks that a run folder says it holds, with weights still to be filled in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fewtags.errors import UserError
from fewtags.methods import METHODS, Method, Setting
from fewtags.methods.variants import method_class, variant
from fewtags.nn.backbone_classes import BackboneClasses
from fewtags.nn.backbones import Backbone, build_backbone
from fewtags.recipe import Recipe
from fewtags.training.fits import MIXED_UP, check_fits
from fewtags.training.folder import MODEL, Labels, RunFolder

BELIEVED = 2000
"""So many categories are taken for granted: what is counted over their pairs is small."""
FEW = 7


class Networks(NamedTuple):
    backbone: Backbone
    method: Method


def filled_networks(folder: RunFolder, recipe: Recipe, labels: Labels) -> Networks:
    """With the weights of the run; on the CPU. Nothing is made larger than the file that fills it."""
    saved = {part: folder.tensors(part) for part in Networks._fields}
    _check_categories(recipe, labels, saved["method"], folder.path)
    for part, network in empty_networks(recipe, labels, "meta", folder.path)._asdict().items():
        check_fits(network, saved[part], f"{folder.path / MODEL}: {part}")
    networks = empty_networks(recipe, labels, "cpu", folder.path)
    for part, network in networks._asdict().items():
        network.load_state_dict(saved[part])
    return networks


def empty_networks(recipe: Recipe, labels: Labels, device: str, where: Path) -> Networks:
    """On the device `meta` they take no memory."""
    try:
        with torch.device(device):
            return Networks(build_backbone(recipe.backbone, pretrained=False), _empty_method(recipe, labels))
    except (RuntimeError, TypeError, MemoryError, OverflowError) as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise UserError(f"{where}: no network can be made from its recipe ({reason[:300]})") from problem


def _empty_method(recipe: Recipe, labels: Labels) -> Method:
    if recipe.method not in METHODS and variant(recipe.method) is None:
        raise UserError(f"the run was trained with method {recipe.method!r}, which this version does not have")
    nothing_known = torch.zeros(1, len(labels.categories), device="cpu")  # it is counted, also for `meta`
    words = None if labels.word_size is None else torch.zeros(len(labels.categories), labels.word_size)
    count = labels.backbone_classes
    classes = BackboneClasses(torch.zeros(count, labels.channels), torch.zeros(count)) if count else None
    setting = Setting(recipe, tuple(labels.categories), labels.channels, nothing_known, words, classes)
    return method_class(recipe.method)(setting)


def _check_categories(recipe: Recipe, labels: Labels, saved: Mapping[str, Tensor], where: Path) -> None:
    """Counting pairs takes memory by the square of the categories: many of them have to be in the file too."""
    count = len(labels.categories)
    if count <= BELIEVED:
        return
    some = {"categories": labels.categories[:FEW], "decision_thresholds": labels.decision_thresholds[:FEW]}
    small: nn.Module = empty_networks(recipe, labels.model_copy(update=some), "meta", where).method
    if _has_pairs(small.state_dict(), FEW) and not _has_pairs(saved, count):
        raise UserError(f"{where / MODEL}: is not of {count:,} categories: {MIXED_UP}")


def _has_pairs(tensors: Mapping[str, Tensor], categories: int) -> bool:
    """Whether any tensor has two axes of as many."""
    return any(list(tensor.shape).count(categories) > 1 for tensor in tensors.values())
