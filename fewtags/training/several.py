"""What Lightning has to be told when several processes train together: DDP, and who is who."""

from __future__ import annotations

import os
import warnings
from typing import Any

from fewtags import torchvision_ops as _torchvision_ops  # noqa: F401  before Lightning imports torchvision
from fewtags.nn.shared_norm import share_batch_norms
from fewtags.processes import together
from fewtags.processes.meeting import present_place
from fewtags.processes.place import Place
from fewtags.training.checkpoint import SafeCheckpointIO
from fewtags.training.module import TrainingModule

from lightning.fabric.plugins.environments import ClusterEnvironment  # isort: skip
from lightning.pytorch.strategies import DDPStrategy  # isort: skip


def processes() -> dict[str, Any]:
    """Settings of Lightning's trainer: one process, or all that have met.

    DDP need not send buffers around (prototypes and queues are large): all processes compute the same ones.
    """
    place = present_place()
    if place is None:
        return {"devices": 1, "plugins": [SafeCheckpointIO()]}
    # Its successor is not in all versions of torch that we run with.
    warnings.filterwarnings("ignore", message=".broadcast_buffers. is deprecated")
    return {
        "devices": place.local_size,
        "num_nodes": place.nodes,
        "strategy": DDPStrategy(broadcast_buffers=False, find_unused_parameters=False),
        "plugins": [SafeCheckpointIO(), Started(place)],
    }


def made_shared(module: TrainingModule) -> TrainingModule:
    """With several processes, batch norms look at the images of all of them."""
    if together.size() > 1:
        share_batch_norms(module)
    return module


class Started(ClusterEnvironment):
    """For Lightning: all processes are there already, and who is who is known."""

    def __init__(self, place: Place):
        self.place = place

    creates_processes_externally = True  # type: ignore[assignment]

    @property
    def main_address(self) -> str:
        return os.environ["MASTER_ADDR"]

    @property
    def main_port(self) -> int:
        return int(os.environ["MASTER_PORT"])

    @staticmethod
    def detect() -> bool:
        return together.size() > 1

    def world_size(self) -> int:
        return self.place.size

    def set_world_size(self, size: int) -> None:
        """It is what it is."""

    def global_rank(self) -> int:
        return self.place.rank

    def set_global_rank(self, rank: int) -> None:
        """It is what it is."""

    def local_rank(self) -> int:
        return self.place.local_rank

    def node_rank(self) -> int:
        return self.place.rank // self.place.local_size
