"""Whether saved tensors are those of a network, found out before the network takes any memory."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from fewtags.errors import UserError

MIXED_UP = "the weights do not fit the recipe; were the files mixed up?"


def check_fits(network: nn.Module, saved: Mapping[str, Tensor], where: str) -> None:
    """Same names, shapes and types, and no number that is none; else a UserError.

    With `network` on the device `meta` nothing is as large as a recipe says before it is as large as the file.
    """
    expected = network.state_dict()
    missing, strange = expected.keys() - saved.keys(), saved.keys() - expected.keys()
    for found, what in ((missing, "is missing"), (strange, "does not belong")):
        if found:
            raise UserError(f"{where}: {min(found)} {what} ({len(found)} such): {MIXED_UP}")
    learned, of_images = {name for name, _ in network.named_parameters()}, _of_images(network)
    for name, tensor in expected.items():
        left_behind = name in of_images and not len(saved[name])
        _check_kind(tensor[:0] if left_behind else tensor, saved[name], f"{where}: {name}")
        _check_finite(saved[name], name in learned, f"{where}: {name}")


def _of_images(network: nn.Module) -> set[str]:
    """Tensors with a row for each training image (`of_images` of a module): a trained model has none."""
    named = network.named_modules()
    return {f"{place}.{name}".lstrip(".") for place, part in named for name in getattr(part, "of_images", ())}


def _check_kind(expected: Tensor, given: Tensor, where: str) -> None:
    if given.shape != expected.shape or given.dtype != expected.dtype:
        said = f"is {_shown(given)}, by the recipe it is {_shown(expected)}"
        raise UserError(f"{where} {said}: {MIXED_UP}")


def _check_finite(given: Tensor, learned: bool, where: str) -> None:
    """What is not learned may be infinite: a threshold that nothing reaches."""
    if given.is_floating_point() and bool((given.isnan() | (given.isinf() & learned)).any()):
        raise UserError(f"{where} holds values that are not finite numbers; the file is damaged")


def _shown(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
