"""Batch norm over the whole batch when each process has a part of it.

torch's own SyncBatchNorm works on GPUs only; this one works wherever processes can talk.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewtags.processes.together import size, sum_with_gradient


class SharedBatchNorm2d(nn.BatchNorm2d):
    """`nn.BatchNorm2d` with mean and variance over the images of all processes; the same names in a checkpoint."""

    def forward(self, maps: Tensor) -> Tensor:
        if not self.training or size() == 1:
            return self._after(super().forward(maps))
        mean = sum_with_gradient(maps.mean((0, 2, 3))) / size()  # (channels,); all have as many images
        centred = maps - mean[:, None, None]
        variance = sum_with_gradient(centred.square().mean((0, 2, 3))) / size()
        self._remember(mean.detach(), variance.detach(), size() * maps.numel() // maps.shape[1])
        scale = torch.rsqrt(variance + self.eps)
        normal = centred * (scale if self.weight is None else scale * self.weight)[:, None, None]
        return self._after(normal if self.bias is None else normal + self.bias[:, None, None])

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((variance * count / max(1, count - 1)).to(self.running_var.dtype), share)

    def _after(self, normal: Tensor) -> Tensor:
        """What timm's batch norms do besides: drop and activate."""
        for part in ("drop", "act"):
            if isinstance(then := getattr(self, part, None), nn.Module):
                normal = then(normal)
        return normal


def share_batch_norms(module: nn.Module) -> None:
    """Make the batch norms inside `module` shared ones. They stay the same objects: frozen ones are listed."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.__class__ = SharedBatchNorm2d
