"""Train one run: from data and recipe to a run folder."""

from __future__ import annotations

import logging
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch.utils.data import DataLoader

from fewtags import torchvision_ops as _torchvision_ops  # noqa: F401  before Lightning imports torchvision
from fewtags.batch import Batch
from fewtags.data import Data, open_for, summary
from fewtags.data import warnings as warnings_about
from fewtags.durations import duration
from fewtags.errors import UserError
from fewtags.images.screening import SKIPPED, write_skipped
from fewtags.labels.sparse import SparseLabels, known_count
from fewtags.methods import Method, Setting
from fewtags.methods.variants import definition, method_class
from fewtags.nn.backbones import Backbone
from fewtags.nn.words import load_words
from fewtags.processes import together
from fewtags.processes.alone import alone
from fewtags.recipe import Recipe
from fewtags.reproduction.record import write_record
from fewtags.training.callbacks import (
    CtrlC,
    EpochBar,
    EpochFiles,
    EpochLines,
    PseudoLabelAudit,
    StopOnBadNumbers,
    checkpoints,
)
from fewtags.training.data import train_loader, walk_loader
from fewtags.training.finish import finish, pseudo_label_constants
from fewtags.training.folder import RunFolder
from fewtags.training.initial import start_from
from fewtags.training.module import TrainingModule
from fewtags.training.prepare import (
    Inputs,
    Prepared,
    choose_device,
    make_backbone,
    prepare_inputs,
    prepare_labels,
    resolved,
)
from fewtags.training.several import made_shared, processes
from fewtags.training.timing import epochs_within, expect

import lightning.pytorch as lightning  # isort: skip
from lightning.pytorch.loggers import TensorBoardLogger  # isort: skip


@alone("train")
def train(
    data: str,
    recipe: Recipe,
    out: str | Path,
    *,
    tokens: str | None = None,
    resume: bool = False,
    init: str | Path | None = None,
    time_budget: float | None = None,
    console: Console | None = None,
    opened: Data | None = None,
) -> RunFolder:
    """Train what `recipe` says on `data`, into the folder `out`; returns the folder.

    `opened`: what `data` names, if it is at hand or on no disk.
    """
    console = console if console is not None and together.is_writer() else Console(quiet=True)
    started = time.perf_counter()
    folder = RunFolder(out)
    recipe = _recipe_to_run(folder, recipe, resume)
    together.wait_for_all()  # before the first of them writes there
    device = choose_device(recipe.device)
    recipe = resolved(recipe, device, definition(recipe.method))
    make_deterministic(recipe)

    opened = opened or open_for(recipe, data, tokens, keep_sparse=True)
    console.print(summary(opened))
    prepared = prepare_labels(opened, recipe)
    _say_what_is_known(prepared, console)
    backbone = make_backbone(recipe).to(device)
    inputs = prepare_inputs(opened, prepared, backbone, device, not method_class(recipe.method).uses_map, console)

    module, loader = _module_and_loader(prepared, inputs, init, console)
    recipe = _budgeted(module, loader, device, time_budget, console)
    if recipe != prepared.recipe:
        prepared = replace(prepared, recipe=recipe)
        module, loader = _module_and_loader(prepared, inputs, init, Console(quiet=True))

    if together.is_writer():
        folder.write_recipe(recipe)
        write_skipped(opened.skipped, folder.path / SKIPPED)
        write_record(folder.path, recipe, data, opened, prepared.known, init, device, resume)
    files = _fit(module, loader, folder, prepared, device, resume, console)
    finish(folder, module, prepared, inputs, files, data, tokens, time.perf_counter() - started, device)
    return folder


def run_name(data: str, recipe: Recipe, resume: bool) -> Path:
    """`runs/DATA-METHOD-SEED`, with a number behind it if that is taken; to resume, the newest of them."""
    words = data.replace(":", "-").replace(",", "-").replace("=", "").rstrip("/").split("/")
    stem = f"{words[-1]}-{recipe.method}-{recipe.seed}"
    number = 1
    while (_numbered(stem, number) / "recipe.yaml").is_file():
        number += 1
    return _numbered(stem, max(1, number - 1) if resume else number)


def _numbered(stem: str, number: int) -> Path:
    return Path("runs") / (stem if number == 1 else f"{stem}-{number}")


def make_method(prepared: Prepared, backbone: Backbone, console: Console) -> Method:
    """A fresh method; its initial weights depend on the seed alone."""
    recipe, categories = prepared.recipe, prepared.train.categories
    words = None if recipe.words is None else load_words(recipe.words, categories, recipe.words_pooling)
    cls = method_class(recipe.method)
    if words is None and recipe.category_features == "sd" and cls.uses_map:
        console.print("Word vectors: none given (--words), so they are learned from the labels.")
    torch.manual_seed(recipe.seed)
    known: Any = prepared.known.labels
    labels: Any = known if isinstance(known, SparseLabels) else torch.from_numpy(known).float()
    vectors = None if words is None else torch.from_numpy(words)
    return cls(Setting(recipe, categories, backbone.channels, labels, vectors, backbone.classes))


def make_deterministic(recipe: Recipe) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    if recipe.threads is not None:
        torch.set_num_threads(recipe.threads)
    np.random.seed(recipe.seed)


def _recipe_to_run(folder: RunFolder, recipe: Recipe, resume: bool) -> Recipe:
    has_work = (folder.path / "recipe.yaml").is_file()
    if resume and not has_work:
        raise UserError(f"{folder.path}: nothing to resume there; leave --resume out to start")
    if has_work and not resume:
        raise UserError(
            f"{folder.path}: there is a run already; continue it with --resume, or choose another --out"
        )
    return folder.recipe() if resume else recipe


def _say_what_is_known(prepared: Prepared, console: Console) -> None:
    recipe, labels = prepared.recipe, prepared.known.labels
    share = 100 * known_count(labels) / (labels.shape[0] * labels.shape[1])
    text = f"Training on {len(labels):,} images; {share:.1f} % of their labels are known"
    if prepared.known.held_out is not None:
        text += f", and {known_count(prepared.known.held_out):,} more are kept out for decision thresholds"
    console.print(f"{text}. Method {recipe.method}, seed {recipe.seed}.", highlight=False)
    if recipe.known < 1:
        for warning in warnings_about(prepared.train):
            console.print(f"Warning: {warning}", style="yellow", highlight=False)


def _module_and_loader(
    prepared: Prepared, inputs: Inputs, init: str | Path | None, console: Console
) -> tuple[TrainingModule, DataLoader[Batch]]:
    recipe, known = prepared.recipe, prepared.known
    method = make_method(prepared, inputs.backbone, console)
    if init is not None:
        start_from(RunFolder(init), method, prepared.train.categories, console)
    walk = walk_loader(inputs.train, known, recipe.batch_size, inputs.workers)
    module = made_shared(TrainingModule(method, recipe, walk, inputs.trained))
    return module, train_loader(inputs.train, known, recipe.batch_size, recipe.seed, inputs.workers)


def _budgeted(
    module: TrainingModule,
    loader: DataLoader[Batch],
    device: torch.device,
    time_budget: float | None,
    console: Console,
) -> Recipe:
    """Say how long it will take; with a budget, train as many epochs as fit."""
    recipe = module.recipe
    expected = together.said_by_first(expect(module, loader, len(loader), device))
    if time_budget is not None:
        epochs = epochs_within(time_budget, expected, recipe.epochs)
        recipe = recipe.replace(epochs=epochs)
    console.print(
        f"Expected: {duration(expected.seconds_per_epoch)} an epoch, "
        f"{duration(expected.seconds_per_epoch * recipe.epochs)} for {recipe.epochs} epochs on {device.type}, "
        f"{expected.peak_gib:.1f} GiB of memory.",
        highlight=False,
    )
    return recipe


def _fit(
    module: TrainingModule,
    loader: DataLoader[Batch],
    folder: RunFolder,
    prepared: Prepared,
    device: torch.device,
    resume: bool,
    console: Console,
) -> EpochFiles:
    files = EpochFiles(folder.path, pseudo_label_constants(prepared))
    trainer = _trainer(module.recipe, folder, files, prepared, device, console)
    saved = checkpoints(folder.path) if resume else []
    try:
        trainer.fit(module, train_dataloaders=loader, ckpt_path=saved[-1] if saved else None)
    except SystemExit as stop:  # what Lightning makes of Ctrl-C
        raise KeyboardInterrupt from stop
    return files


def _trainer(
    recipe: Recipe,
    folder: RunFolder,
    files: EpochFiles,
    prepared: Prepared,
    device: torch.device,
    console: Console,
) -> lightning.Trainer:
    _quiet_lightning()
    watch: list[lightning.Callback] = [
        PseudoLabelAudit(prepared.hidden),
        StopOnBadNumbers(prepared.train.images),
        CtrlC(),
        files,
    ]
    watch.append((EpochBar if console.is_terminal else EpochLines)(console, files))
    return lightning.Trainer(
        max_epochs=recipe.epochs,
        accelerator="gpu" if device.type == "cuda" else device.type,
        callbacks=watch,
        logger=TensorBoardLogger(folder.path, name="logs", version=""),
        enable_checkpointing=True,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=10,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        **processes(),
    )


def _quiet_lightning() -> None:
    """Its hints are for people who write Lightning code, not for those who run this command."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"lightning\..*")
    warnings.filterwarnings("ignore", message=r".*num_workers.*")
