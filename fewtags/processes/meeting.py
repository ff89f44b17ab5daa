"""Meet the other processes."""

from __future__ import annotations

import atexit
import os
from datetime import timedelta

import torch
from torch import distributed

from fewtags.errors import UserError
from fewtags.processes import together
from fewtags.processes.place import Place, find_place, slurm_address

PATIENCE = timedelta(hours=12)
"""For a process that computes features longer than the others. One that has died is noticed at once."""
_place: Place | None = None


def meet(devices: int | None, nodes: int | None, device: str = "auto") -> bool:
    """Join the others if torchrun, Slurm or `launch` started several. Returns whether this process may write."""
    global _place
    place = find_place(devices, nodes)
    if place is None or distributed.is_initialized():
        return together.is_writer()
    if device == "mps":
        raise UserError("--device mps: there is one such device only; leave --devices and --nodes out")
    if "MASTER_ADDR" not in os.environ:
        os.environ.update(slurm_address())
    cuda = device != "cpu" and torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(place.local_rank)
    backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
    distributed.init_process_group(backend, rank=place.rank, world_size=place.size, timeout=PATIENCE)
    together.use_group(distributed.new_group(backend=backend, timeout=PATIENCE))
    atexit.register(part)
    _place = place
    return together.is_writer()


def part() -> None:
    """Leave the others."""
    together.use_group(None)
    if distributed.is_initialized():
        distributed.destroy_process_group()


def present_place() -> Place | None:
    """This process's place among those that have met; None: it is alone."""
    return _place if together.size() > 1 else None
