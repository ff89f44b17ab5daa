"""The Lightning module. It knows batches, named loss terms and parameter groups; it names no method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from fewtags import torchvision_ops as _torchvision_ops  # noqa: F401  before Lightning imports torchvision
from fewtags.batch import Batch
from fewtags.methods.base import Method, Moment, ParameterGroup
from fewtags.processes import together
from fewtags.recipe import Recipe
from fewtags.training.fits import check_fits

import lightning.pytorch as lightning  # isort: skip


class TrainingModule(lightning.LightningModule):
    """A method on top of a backbone; without one, its inputs are already feature maps."""

    def __init__(self, method: Method, recipe: Recipe, walk: Iterable[Batch], backbone: nn.Module | None = None):
        super().__init__()
        self.method = method
        self.backbone = backbone
        self.recipe = recipe
        self.walk = walk
        self.gradient_norm: Tensor | None = None

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        return self.method(self.backbone(inputs) if self.backbone is not None else inputs)

    # Each epoch starts from its own seed, so that a resumed run draws what an uninterrupted one draws.
    def on_train_epoch_start(self) -> None:
        of_process = together.rank() * 1_000_000_007  # else all processes would drop the same features
        torch.manual_seed(self.recipe.seed * 1_000_003 + self.current_epoch + of_process)

    def on_train_start(self) -> None:
        if not self.trainer.global_step:  # not resumed
            self.method.before_training(self.walk_inputs)
            together.make_equal(self.method)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        factor = schedule_factor(self.recipe, self._moment(batch_idx).progress)
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = group["base_lr"] * (factor if group["scheduled"] else 1.0)

    def training_step(self, batch: Batch, batch_idx: int) -> dict[str, Any]:
        moment = self._moment(batch_idx)
        step = self.method.losses(self(batch.inputs), batch, moment)
        weights = self.method.loss_weights(moment)
        loss = torch.stack([weights.get(name, 1.0) * term for name, term in step.terms.items()]).sum()
        terms = {f"loss/{name}": term.detach() for name, term in step.terms.items()}
        terms["loss/total"] = loss.detach()
        several = together.size() > 1  # the mean over processes is the loss of the whole batch
        self.log_dict(terms, on_step=False, on_epoch=True, batch_size=len(batch.labels), sync_dist=several)
        return {"loss": loss, "proposals": step.proposals}

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        self.method.after_step()

    def on_train_epoch_end(self) -> None:
        if self.method.wants_walk(self.current_epoch):
            self.method.after_epoch(self.current_epoch, self.walk_outputs)
            together.make_equal(self.method)
        self.log_dict(self.method.status())

    def walk_inputs(self) -> Iterator[Batch]:
        """All training images once, as `walk_outputs`, without what the network makes of them."""
        return (batch.to(self.device) for batch in self.walk)

    @torch.no_grad()
    def walk_outputs(self) -> Iterator[tuple[Batch, dict[str, Tensor]]]:
        """All training images once (of several processes, each its share), unaugmented, with the outputs."""
        training = self.training
        self.eval()
        for batch in self.walk:
            batch = batch.to(self.device)
            yield batch, self(batch.inputs)
        self.train(training)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return batch.to(device)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A checkpoint of another network, or a stranger's: said before anything is filled in."""
        check_fits(self, checkpoint["state_dict"], "the checkpoint to resume from")

    def configure_optimizers(self) -> torch.optim.Optimizer:
        groups = self.method.parameter_groups()
        if self.backbone is not None:
            trained = [p for p in self.backbone.parameters() if p.requires_grad]
            groups = [*groups, ParameterGroup("backbone", trained, self.recipe.backbone_lr)]
        return make_optimizer(groups, self.recipe)

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip everything but the thresholds, and log how often that happens."""
        if not self.recipe.clip_norm:
            return
        clipped = [p for group in optimizer.param_groups if group["scheduled"] for p in group["params"]]
        norm = nn.utils.clip_grad_norm_(clipped, self.recipe.clip_norm)
        self.gradient_norm = norm
        self.log("gradient/norm", norm, on_step=False, on_epoch=True)
        self.log("gradient/clipped", (norm > self.recipe.clip_norm).float(), on_step=False, on_epoch=True)

    def _moment(self, batch_idx: int) -> Moment:
        return Moment(self.current_epoch, self.current_epoch + batch_idx / self.trainer.num_training_batches)


def make_optimizer(groups: list[ParameterGroup], recipe: Recipe) -> torch.optim.Optimizer:
    """Adam or AdamW with one group per name and kind; biases, norms and thresholds are not decayed."""
    optimizer_groups = [made for group in groups for made in _decayed_and_not(group, recipe)]
    kind = torch.optim.AdamW if recipe.optimizer == "adamw" else torch.optim.Adam
    return kind(optimizer_groups, lr=recipe.head_lr, weight_decay=recipe.weight_decay)


def _decayed_and_not(group: ParameterGroup, recipe: Recipe) -> list[dict[str, Any]]:
    common = {"lr": group.lr, "base_lr": group.lr, "scheduled": group.scheduled}
    trained = [p for p in group.parameters if p.requires_grad]
    matrices = [p for p in trained if group.decay and (p.ndim > 1 or not group.scheduled)]
    rest = [p for p in trained if not any(p is matrix for matrix in matrices)]
    made = [
        {"name": group.name, "params": matrices, "weight_decay": recipe.weight_decay, **common},
        {"name": f"{group.name} (no decay)", "params": rest, "weight_decay": 0.0, **common},
    ]
    return [part for part in made if part["params"]]


def schedule_factor(recipe: Recipe, progress: float) -> float:
    """The learning rate's factor after `progress` epochs."""
    if recipe.schedule == "step":
        return 0.1 ** (int(progress) // recipe.step_epochs)
    if recipe.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(1.0, progress / recipe.epochs)))
    return 1.0
