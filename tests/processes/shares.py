"""A batch of which each process has a share, and one step of a method on it."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from fewtags.batch import Batch
from fewtags.methods import METHODS, Setting
from fewtags.methods.base import Method, Moment
from fewtags.nn.shared_norm import share_batch_norms
from fewtags.processes import together
from fewtags.recipe import Recipe
from fewtags.training.data import Collate, KnownLabels
from fewtags.training.prepare import random_folds
from tests.conftest import TINY

CATEGORIES, CHANNELS, IMAGES = 6, 12, 24
MOMENTS = {"warm-up": Moment(epoch=0, progress=0.0), "later": Moment(epoch=99, progress=99.0)}


def labels_of(known: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    values = np.where(rng.random((IMAGES, CATEGORIES)) < 0.4, 1, -1)
    values = np.where(rng.random(values.shape) < known, values, 0).astype(np.int8)
    values[IMAGES // 4 : IMAGES // 2] = np.minimum(values[IMAGES // 4 : IMAGES // 2], 0)
    return values  # the second of four processes has no known present label at all


def batch_of(labels: np.ndarray, rows: range) -> Batch:
    maps = torch.randn(IMAGES, CHANNELS, 4, 4, generator=torch.Generator().manual_seed(1))
    held = np.where(np.random.default_rng(5).random(labels.shape) < 0.2, -labels, 0).astype(np.int8)
    known = KnownLabels(labels, held_out=held, folds=random_folds(labels.shape, 0))
    return Collate(known, 0)(([(row, 0) for row in rows], maps[rows.start : rows.stop]))


def make(name: str, labels: np.ndarray, settings: dict) -> Method:
    own = METHODS[name].settings | {"threshold_labels": "crossfit", "dropout": 0.0} | settings
    recipe = Recipe(**(TINY | own))
    torch.manual_seed(0)
    return METHODS[name](Setting(recipe, tuple("abcdef"), CHANNELS, torch.from_numpy(labels).float()))


class Training(nn.Module):
    """As Lightning hands a training step to DDP: its forward gives the loss."""

    def __init__(self, method: Method):
        super().__init__()
        self.method = method

    def forward(self, batch: Batch, moment: Moment) -> torch.Tensor:
        terms = self.method.losses(self.method(batch.inputs), batch, moment).terms
        weights = self.method.loss_weights(moment)
        return torch.stack([weights.get(name, 1.0) * term for name, term in terms.items()]).sum()


def stepped(name: str, moment: Moment, settings: dict) -> dict[str, torch.Tensor]:
    """Walk, then two steps: gradients of the first, the loss, and all buffers after the second."""
    labels = labels_of(1.0 if name == "full_labels" else 0.5)
    method, batch = make(name, labels, settings), batch_of(labels, together.own_share(IMAGES))
    if together.size() > 1:
        share_batch_norms(method)
    method.eval()
    method.after_epoch(0, lambda: [(batch, method(batch.inputs))])
    method.train()
    training: nn.Module = Training(method)
    if together.size() > 1:
        training = DistributedDataParallel(training, broadcast_buffers=False, find_unused_parameters=False)
    torch.manual_seed(together.rank())  # as training does
    loss = training(batch, moment)
    loss.backward()
    found = {f"gradient/{key}": p.grad.clone() for key, p in method.named_parameters() if p.grad is not None}
    training(batch, moment).backward()
    method.after_step()
    found |= {f"buffer/{key}": value.clone() for key, value in method.named_buffers()}
    found |= {f"parameter/{key}": value.detach().clone() for key, value in method.named_parameters()}
    return found | {"loss": together.total(loss.detach()) / together.size()}
