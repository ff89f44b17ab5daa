"""Checkpoints without pickle: one safetensors file, its tensors beside a JSON description of everything else.

Lightning's own checkpoints are pickles, which run code when loaded. A run folder may come from a stranger, so ours
hold tensors and plain values only; anything else is refused when it is saved.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from fewtags import torchvision_ops as _torchvision_ops  # noqa: F401  before Lightning imports torchvision
from fewtags.errors import UserError
from fewtags.files import whole_file

from lightning.pytorch.plugins.io import CheckpointIO  # isort: skip

STRUCTURE = "structure"
MALFORMED = (SafetensorError, OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
KINDS = {
    "epoch": int,
    "global_step": int,
    "state_dict": dict,
    "optimizer_states": list,
    "loops": dict,
    "callbacks": dict,
}
"""What a checkpoint of a run holds, and more."""


def encode(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """Plain JSON for `value`; its tensors go to `tensors` and leave their name behind."""
    if isinstance(value, torch.Tensor):
        name = f"t{len(tensors)}"
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[encode(k, tensors), encode(v, tensors)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [encode(item, tensors) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TypeError(f"a checkpoint holds tensors and plain values only, not {type(value)}")


def decode(coded: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """What `encode` was given."""
    (kind, content), *_ = coded.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {decode(k, tensors): decode(v, tensors) for k, v in content}
    if kind in ("list", "tuple"):
        items = [decode(item, tensors) for item in content]
        return items if kind == "list" else tuple(items)
    return content


def save(values: dict[str, Any], path: Path) -> None:
    tensors: dict[str, torch.Tensor] = {}
    structure = json.dumps(encode(values, tensors))
    with whole_file(path) as temporary:
        save_file(tensors, temporary, metadata={STRUCTURE: structure})


def load(path: Path) -> dict[str, Any]:
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            structure = json.loads(file.metadata()[STRUCTURE])
        return decode(structure, tensors)
    except MALFORMED as problem:
        raise UserError(f"{path}: not a checkpoint of fewtags ({problem}); delete it to start over") from problem


def checked(checkpoint: Any, path: Any) -> dict[str, Any]:
    """Of the kinds that Lightning takes for granted."""
    held = checkpoint if isinstance(checkpoint, dict) else {}
    wrong = [name for name, kind in KINDS.items() if not isinstance(held.get(name), kind)]
    tensors = [] if wrong else held["state_dict"].values()
    if wrong or not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        what = ", ".join(wrong) or "state_dict"
        raise UserError(f"{path}: not a checkpoint of fewtags ({what} cannot be read); delete it to start over")
    return held


class SafeCheckpointIO(CheckpointIO):
    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        os.makedirs(Path(path).parent, exist_ok=True)
        save(checkpoint, Path(path))

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        return checked(load(Path(path)), path)

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)
