"""Start from a trained run when labels or categories were added (`train --init RUN`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.console import Console
from torch import Tensor, nn

from fewtags.errors import UserError
from fewtags.training.folder import RunFolder


def start_from(run: RunFolder, method: nn.Module, categories: Sequence[str], console: Console) -> None:
    """Copy what fits from `run` into `method`: shared weights as they are, per-category rows by category name."""
    before = run.labels().categories
    saved = run.tensors("method")
    axes = category_axes(method)
    copied = [_copy(name, value, saved, axes.get(name), before, categories) for name, value in _state(method)]
    if not any(copied):
        raise UserError(f"{run.path}: nothing in it fits this method; train it with the same method and sizes")
    new = [name for name in categories if name not in before]
    console.print(
        f"Started from {run.path}: {sum(copied)} of {len(copied)} tensors taken over"
        + (f"; new categories: {', '.join(new)}" if new else ""),
        highlight=False,
    )


def category_axes(method: nn.Module) -> dict[str, tuple[int, ...]]:
    """Which axes of which tensors run over categories, as each module declares in `category_axes`."""
    return {
        f"{path}.{name}" if path else name: axes
        for path, module in method.named_modules()
        for name, axes in getattr(module, "category_axes", {}).items()
    }


def _state(method: nn.Module) -> list[tuple[str, Tensor]]:
    """Parameters and batch-norm statistics. The rest (graph, prototypes, queue) is made from the data at hand."""
    statistics = [
        (f"{path}.{name}", value)
        for path, module in method.named_modules()
        if isinstance(module, nn.BatchNorm2d)
        for name, value in module.named_buffers()
    ]
    return [*method.named_parameters(), *statistics]


@torch.no_grad()
def _copy(
    name: str,
    value: Tensor,
    saved: dict[str, Tensor],
    axes: tuple[int, ...] | None,
    before: Sequence[str],
    now: Sequence[str],
) -> bool:
    old = saved.get(name)
    if old is None or old.ndim != value.ndim:
        return False
    if axes is None:
        return _copy_whole(value, old)
    shared = [category for category in now if category in before]
    to, origin = [list(now).index(c) for c in shared], [list(before).index(c) for c in shared]
    return _copy_rows(value, old, axes, to, origin)


def _copy_whole(value: Tensor, old: Tensor) -> bool:
    if old.shape != value.shape:
        return False
    value.copy_(old)
    return True


def _copy_rows(value: Tensor, old: Tensor, axes: tuple[int, ...], to: list[int], origin: list[int]) -> bool:
    rest = [axis for axis in range(value.ndim) if axis not in axes]
    if any(value.shape[axis] != old.shape[axis] for axis in rest):
        return False
    if len(axes) == 1:
        value.index_copy_(
            axes[0],
            torch.tensor(to, device=value.device),
            old.index_select(axes[0], torch.tensor(origin)).to(value),
        )
    else:
        value[torch.tensor(to)[:, None], torch.tensor(to)] = old[
            torch.tensor(origin)[:, None], torch.tensor(origin)
        ]
    return True
