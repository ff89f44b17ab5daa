"""Steps of the whole network: hst on a backbone, beside a linear layer on the same backbone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.cases import Case
from benchmarks.workload import TINY, make_batch, make_method, total
from fewtags.batch import Batch
from fewtags.methods.base import Method, Setting
from fewtags.methods.plain import Plain
from fewtags.nn.backbones import build_backbone
from fewtags.nn.inference import fastest
from fewtags.training.module import TrainingModule

BACKBONES = {"paper": ("resnet101", 448), "tiny": ("test_resnet", 96)}
POOLED_SIDE = 7


def make_step(case: Case) -> Callable[[], Tensor]:
    return training(case) if case.module == "train" else prediction(case)


def training(case: Case) -> Callable[[], Tensor]:
    """What a training step does: forward, losses, backward, clipping, optimiser."""
    module, batch = network(case)
    optimizer = module.configure_optimizers()
    clipped = [p for group in optimizer.param_groups if group["scheduled"] for p in group["params"]]
    module.train()

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = total(module.method, batch, module(batch.inputs))
        loss.backward()
        nn.utils.clip_grad_norm_(clipped, module.recipe.clip_norm)
        optimizer.step()
        module.method.after_step()
        return loss.detach()

    return step


def prediction(case: Case) -> Callable[[], Tensor]:
    """Images to probabilities. Both contenders get the backbone at its fastest, so that heads weigh the most."""
    module, batch = network(case)
    assert module.backbone is not None
    return inference(module.method, fastest(module.backbone, batch.inputs[:1]), batch.inputs)


def inference(method: Method, backbone: nn.Module, images: Tensor) -> Callable[[], Tensor]:
    method.eval()
    images = images.contiguous(memory_format=torch.channels_last)

    @torch.inference_mode()
    def step() -> Tensor:
        return torch.sigmoid(method(backbone(images))["logits"]).mean()

    return step


def network(case: Case) -> tuple[TrainingModule, Batch]:
    """hst with all that fewtags adds to the paper, or a linear layer; the backbone's last stage is trained."""
    name, pixels = BACKBONES[case.scale]
    torch.manual_seed(0)
    backbone = build_backbone(name, pretrained=False)
    backbone.train_last(1)
    sizes = TINY if case.scale == "tiny" else {}
    method: Method = make_method(case.categories, backbone.channels, pool_map=case.side == POOLED_SIDE, **sizes)
    if case.contender == "bare":
        nothing_known = torch.zeros(1, case.categories)
        method = Plain(Setting(method.recipe, method.categories, backbone.channels, nothing_known))
    batch = make_batch(case.batch, case.categories, pixels, 3, case.known, crossfit=True)
    return TrainingModule(method, method.recipe, [], backbone), batch
