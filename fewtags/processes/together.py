"""What several processes work out together. Each trains on its share of a batch, and all must come out with the
model of one process that sees the whole batch.

DDP averages gradients over processes. So each process's loss is made such that the *mean* over processes is the
loss of the whole batch: a sum over its own images, times the number of processes, over a count from all of them
(`losses.partial_bce.batch_ratio`). What compares images with each other sees those of all processes, with gradient
(`all_rows_with_gradient`). With one process every function gives back what it was given.

All processes have to call these functions in the same order, so no call may depend on a process's own data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn

Anything = TypeVar("Anything")
_group: distributed.ProcessGroup | None = None


def use_group(group: distributed.ProcessGroup | None) -> None:
    """Talk in a group of its own, so that nothing here gets between DDP's messages, which go out when they can."""
    global _group
    _group = group


def size() -> int:
    """The number of processes."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def rank() -> int:
    """Which of them this is, from 0."""
    return distributed.get_rank() if size() > 1 else 0


def is_writer() -> bool:
    """One process writes files and speaks to people: the first."""
    return rank() == 0


def wait_for_all() -> None:
    if size() > 1:
        distributed.barrier(group=_group)


def own_share(count: int, unit: int = 1) -> range:
    """Rows 0 .. count - 1, in whole units, shared out in order: those of this process."""
    units = -(-count // unit)
    first, last = (units * place // size() * unit for place in (rank(), rank() + 1))
    return range(min(first, count), min(last, count))


def own_rows(whole: Tensor, count: int) -> Tensor:
    """Whole (size · count, ...) of a batch → this process's (count, ...)."""
    return whole[rank() * count : (rank() + 1) * count]


@torch.no_grad()
def total(values: Tensor) -> Tensor:
    """Values of one shape → their sum over all processes."""
    return values if size() == 1 else _reduced(values, distributed.ReduceOp.SUM)


@torch.no_grad()
def largest(values: Tensor) -> Tensor:
    """Values of one shape → the greatest over all processes, element by element."""
    return values if size() == 1 else _reduced(values, distributed.ReduceOp.MAX)


@torch.no_grad()
def smallest(values: Tensor) -> Tensor:
    """Values of one shape → the least over all processes, element by element."""
    return values if size() == 1 else _reduced(values, distributed.ReduceOp.MIN)


@torch.no_grad()
def from_first(values: Tensor) -> Tensor:
    """What the first process has, on all of them."""
    if size() == 1:
        return values
    received = values.clone(memory_format=torch.contiguous_format)
    distributed.broadcast(received, 0, group=_group)
    return received


def said_by_first(value: Anything) -> Anything:
    """The same for any small value."""
    if size() == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values, 0, group=_group)
    return values[0]


def said_by_all(value: Anything) -> list[Anything]:
    """Any value of each process, in the order of the processes."""
    if size() == 1:
        return [value]
    values: list[Any] = [None] * size()
    distributed.all_gather_object(values, value, group=_group)
    return values


@torch.no_grad()
def all_rows(rows: Tensor) -> Tensor:
    """Rows (n, ...), n of each process's own → those of all processes one after the other."""
    if size() == 1:
        return rows
    counts = [int(count) for count in _gathered(torch.tensor([len(rows)], device=rows.device))]
    padded = rows.new_zeros(max(counts), *rows.shape[1:])
    padded[: len(rows)] = rows
    return torch.cat([part[:count] for part, count in zip(_gathered(padded), counts, strict=True)])


def all_array_rows(rows: np.ndarray) -> np.ndarray:
    """`all_rows` for arrays, of any type of numbers."""
    if size() == 1:
        return rows
    width = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
    content = np.frombuffer(np.ascontiguousarray(rows).tobytes(), np.uint8).reshape(len(rows), width)
    whole = all_rows(torch.from_numpy(content.copy())).numpy()
    return np.frombuffer(whole.tobytes(), rows.dtype).reshape(len(whole), *rows.shape[1:]).copy()


@torch.no_grad()
def all_batch_rows(rows: Tensor) -> Tensor:
    """The same where n is equal on all processes, as within a training step: nobody has to ask for it."""
    return rows if size() == 1 else torch.cat(_gathered(rows))


def all_rows_with_gradient(rows: Tensor) -> Tensor:
    """`all_batch_rows`, whose gradient goes back to the process that each row came from."""
    if size() == 1:
        return rows
    whole: Tensor = _AllRows.apply(rows)
    return whole


def sum_with_gradient(values: Tensor) -> Tensor:
    """`total`, with gradient."""
    if size() == 1:
        return values
    summed: Tensor = _Sum.apply(values)
    return summed


def random_rows(*shape: int) -> Tensor:
    """Uniform random (n, ...) for n rows of this process: what one process would draw for the whole batch."""
    if size() == 1:
        return torch.rand(*shape)
    return own_rows(from_first(torch.rand(size() * shape[0], *shape[1:])), shape[0])


@torch.no_grad()
def make_equal(module: nn.Module) -> None:
    """Parameters and buffers as the first process has them: machines may round differently."""
    if size() > 1:
        for tensor in _state(module):
            distributed.broadcast(tensor, 0, group=_group)


def _state(module: nn.Module) -> Iterable[Tensor]:
    return [value.data for value in (*module.parameters(), *module.buffers()) if value.numel()]


def _reduced(values: Tensor, operation: Any) -> Tensor:
    result = values.clone(memory_format=torch.contiguous_format)
    distributed.all_reduce(result, operation, group=_group)
    return result


def _gathered(values: Tensor) -> list[Tensor]:
    values = values.contiguous()
    parts = [torch.empty_like(values) for _ in range(size())]
    distributed.all_gather(parts, values, group=_group)
    return parts


class _AllRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.count = len(rows)
        return torch.cat(_gathered(rows))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Each process has a loss of its own that looks at these rows: what all of them ask of a row adds up."""
        return own_rows(total(grads[0]), ctx.count)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return total(values)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return total(grads[0])
