"""Which of how many processes is this? Read from the variables that torchrun and Slurm set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from fewtags.errors import UserError


@dataclass(frozen=True)
class Place:
    """This process among all: `rank` of `size`, `local_rank` of `local_size` on its machine."""

    rank: int
    size: int
    local_rank: int
    local_size: int

    @property
    def nodes(self) -> int:
        return self.size // self.local_size


def find_place(devices: int | None, nodes: int | None, environ: Mapping[str, str] = os.environ) -> Place | None:
    """Where torchrun or Slurm put this process; None if it is alone or has to start the others itself.

    Slurm's variables are in every job, so they count only if --devices or --nodes ask for several processes.
    """
    wanted = (devices or 1) * (nodes or 1)
    place = _torchrun(environ)
    if place is None and wanted > 1:
        place = _slurm(environ)
    if place is not None:
        _check(place, devices, nodes)
    return place if place is not None and place.size > 1 else None


def _torchrun(environ: Mapping[str, str]) -> Place | None:
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= environ.keys():
        return None
    size = _number(environ, "WORLD_SIZE")
    local_size = _number(environ, "LOCAL_WORLD_SIZE") if "LOCAL_WORLD_SIZE" in environ else size
    local_rank = _number(environ, "LOCAL_RANK") if "LOCAL_RANK" in environ else _number(environ, "RANK")
    return Place(_number(environ, "RANK"), size, local_rank, local_size)


def _slurm(environ: Mapping[str, str]) -> Place | None:
    if not {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"} <= environ.keys():
        return None
    size, nodes = _number(environ, "SLURM_NTASKS"), int(environ.get("SLURM_NNODES", "1"))
    if size == 1:
        return None  # a shell or a single task within a job: this process starts the others
    return Place(_number(environ, "SLURM_PROCID"), size, _number(environ, "SLURM_LOCALID"), max(1, size // nodes))


def _number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError as problem:
        raise UserError(f"{name}={environ[name]!r}: it has to be a number; who set this variable?") from problem


def _check(place: Place, devices: int | None, nodes: int | None) -> None:
    if place.size % place.local_size:
        raise UserError(
            f"{place.size} processes cannot be {place.local_size} on each machine: start as many on every one"
        )
    for flag, asked, found in (("--devices", devices, place.local_size), ("--nodes", nodes, place.nodes)):
        if asked is not None and asked != found:
            raise UserError(
                f"{flag} {asked}: but {place.size} processes were started, {place.local_size} on each of "
                f"{place.nodes} machines; make the launcher and the flags agree, or leave {flag} out"
            )


def slurm_address(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """MASTER_ADDR and MASTER_PORT for a Slurm job: the first of its nodes, a port made from the job's number."""
    first = first_node(environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_NODELIST") or "127.0.0.1")
    port = str(15000 + int(environ.get("SLURM_JOB_ID", "0")) % 10000)
    return {
        "MASTER_ADDR": environ.get("MASTER_ADDR", first),
        "MASTER_PORT": environ.get("MASTER_PORT", port),
    }


def first_node(nodes: str) -> str:
    """`gpu[07-09,12],big1` → gpu07; `n1,n2` → n1."""
    head = nodes.split(",")[0]
    if "[" not in head:
        return head
    stem, _, numbers = head.partition("[")
    return stem + numbers.rstrip("]").split("-")[0]
