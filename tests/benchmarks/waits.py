"""Records where a step would make the host wait for a GPU: it reads a value, or a shape depends on values.

A GPU is not needed: what waits there is recognised here by the operations that are called.
"""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

READS = ("item", "cpu", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__", "__array__")
"""Methods of a tensor that hand its values to Python."""
SHAPES_BY_VALUES = ("nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "equal")
"""Operations whose result, or its shape, the host has to wait for."""


class Waits:
    """`with Waits() as waits: ...` → `waits.found`: what waited, and the line of fewtags that did it."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.modes = (_Methods(self.found), _Operations(self.found))

    def __enter__(self) -> Waits:
        for mode in self.modes:
            mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for mode in reversed(self.modes):
            mode.__exit__(kind, problem, trace)


class _Methods(TorchFunctionMode):
    def __init__(self, found: list[str]):
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in READS and args and isinstance(args[0], Tensor):
            self.found.append(_where(name))
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    def __init__(self, found: list[str]):
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if (
            name in SHAPES_BY_VALUES
            or _by_mask(name, args)
            or (name == "_local_scalar_dense" and not self._seen())
        ):
            self.found.append(_where(name))
        return func(*args, **(kwargs or {}))

    def _seen(self) -> bool:
        """Whether the method that reads the value has been recorded already."""
        return bool(self.found) and self.found[-1].split(" ", 1)[-1] == _where("").split(" ", 1)[-1]


def _by_mask(name: str, args: Any) -> bool:
    """Indexing with booleans looks for those that are True."""
    if name not in ("index", "index_put", "index_put_", "_index_put_impl_"):
        return False
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])


def _where(name: str) -> str:
    """`item in fewtags/transfer/intra.py: forward`"""
    frames = [frame for frame in traceback.extract_stack() if "/fewtags/" in frame.filename]
    if not frames:
        return f"{name} outside of fewtags"
    return f"{name} in fewtags/{frames[-1].filename.rsplit('/fewtags/', 1)[1]}: {frames[-1].name}"
