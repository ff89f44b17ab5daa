"""The end of a run: score the test split once, fit the decision thresholds, and write the run folder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fewtags.completion.kept import Keeper
from fewtags.methods import Method
from fewtags.metrics import evaluate, fit_decision_thresholds, score_pseudo_labels
from fewtags.processes import together
from fewtags.training.callbacks import EpochFiles
from fewtags.training.data import KnownLabels, walk_loader
from fewtags.training.folder import Labels, RunFolder
from fewtags.training.module import TrainingModule
from fewtags.training.prepare import Inputs, Prepared
from fewtags.training.prepare_sparse import dense_known, dense_table
from fewtags.training.timing import peak_memory_gib


def finish(
    folder: RunFolder,
    module: TrainingModule,
    prepared: Prepared,
    inputs: Inputs,
    files: EpochFiles,
    data: str,
    tokens: str | None,
    seconds: float,
    device: torch.device,
) -> None:
    """Decision thresholds, weights, labels.json, predictions and metrics.json: what makes a run folder complete.

    Several processes look at the images together; one of them writes.
    """
    prepared = replace(prepared, train=dense_table(prepared.train), known=dense_known(prepared.known))
    module.eval().to(device)
    inputs.backbone.eval().to(device)
    keeper = Keeper(module.method, prepared.train, prepared.known.held_out, prepared.recipe.seed)
    keeper.walk(module.walk_outputs())
    scored = len(prepared.test) and prepared.test.known.any()
    probabilities = predict_test(module, prepared, inputs) if scored else None
    if not together.is_writer():
        return
    thresholds, origin = decision_thresholds(keeper.logits, prepared)
    folder.save_model(inputs.backbone, module.method)
    keeper.write(folder.path)
    folder.write_labels(
        Labels(
            categories=list(prepared.train.categories),
            decision_thresholds=[round(float(t), 6) for t in thresholds],
            decision_thresholds_from=origin,
            data=data,
            tokens=tokens,
            channels=inputs.backbone.channels,
            backbone_classes=class_count(module.method),
            word_size=word_size(module.method),
        )
    )
    if probabilities is not None:
        folder.write_predictions(prepared.test.images, probabilities)
    folder.write_metrics(_metrics(prepared, probabilities, files, seconds))


def word_size(method: Method) -> int | None:
    """The size of given word vectors; a loaded model needs as many columns."""
    sizes = (int(buffer.shape[1]) for name, buffer in method.named_buffers() if name.split(".")[-1] == "words")
    return next(sizes, None)


def class_count(method: Method) -> int:
    """How many of the backbone's classes the method reads; a loaded model needs as many rows."""
    sizes = (len(buffer) for name, buffer in method.named_buffers() if name.split(".")[-1] == "class_bias")
    return next(sizes, 0)


def decision_thresholds(logits: np.ndarray, prepared: Prepared) -> tuple[np.ndarray, str]:
    """Per-category thresholds from the labels that were kept out of training; logits (images, categories)."""
    held = prepared.known.held_out
    if held is None or not held.any():
        return np.full(len(prepared.train.categories), 0.5), "nothing was held out: 0.5"
    thresholds = fit_decision_thresholds(torch.sigmoid(torch.from_numpy(logits)).numpy(), held)
    return thresholds, f"{int((held != 0).sum())} known training labels held out of training"


def predict_test(module: TrainingModule, prepared: Prepared, inputs: Inputs) -> np.ndarray:
    """(test images, categories) probabilities."""
    unknown = KnownLabels(np.zeros_like(prepared.test.values))
    loader = walk_loader(inputs.test, unknown, prepared.recipe.batch_size, inputs.workers)
    logits = [torch.zeros(0, len(prepared.test.categories), device=module.device)]
    with torch.no_grad():
        logits += [module(batch.inputs.to(module.device))["logits"] for batch in loader]
    return together.all_array_rows(torch.sigmoid(torch.cat(logits)).cpu().numpy())


def _metrics(
    prepared: Prepared, probabilities: np.ndarray | None, files: EpochFiles, seconds: float
) -> dict[str, Any]:
    recipe, scores = prepared.recipe, {}
    if probabilities is not None:
        scores = evaluate(probabilities, prepared.test.values, prepared.test.categories)
    return {
        "method": recipe.method,
        "known": recipe.known,
        "seed": recipe.seed,
        **scores,
        "images": len(prepared.train),
        "test_images": len(prepared.test),
        "epochs": recipe.epochs,
        "backbone": recipe.backbone,
        "recipe_hash": recipe.hash(),
        "seconds": round(seconds, 1),
        "training_seconds": round(sum(row["seconds"] for row in files.rows), 1),
        "peak_memory_gib": round(peak_memory_gib(), 2),
        "pseudo_labels": last_pseudo_labels(files.rows),
    }


def last_pseudo_labels(rows: list[dict[str, float]]) -> dict[str, float]:
    """The counts of the last epoch: `intra_made`, `intra_right`, ..., `hidden_present`, `reachable`."""
    last = rows[-1] if rows else {}
    return {name.removeprefix("pseudo/"): value for name, value in last.items() if name.startswith("pseudo/")}


def pseudo_label_constants(prepared: Prepared) -> dict[str, float]:
    """What could be filled at all: hidden present labels, and those within reach of a known one."""
    if prepared.hidden is None:
        return {}
    labels = prepared.known.labels
    score = score_pseudo_labels(labels, np.zeros_like(labels), prepared.hidden)
    return {"pseudo/hidden_present": score.hidden_present, "pseudo/reachable": score.reachable}
