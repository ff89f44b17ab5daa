"""`fewtags export RUN --onnx FILE`: backbone and method as one graph that any ONNX runtime computes.

Normalisation and the sigmoid are inside, so that a user has to get nothing right but the resizing; what the
columns mean is in the file's metadata (`fewtags/model_card.py`). A file that differs from the run is not written.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from fewtags import __version__
from fewtags.errors import UserError
from fewtags.files import whole_file
from fewtags.model_card import ModelCard
from fewtags.predict import Tagger, load

OPSET = 20
TOLERANCE = 1e-4
"""Largest difference between a probability of the file and of `predict` that is still called equal."""
CHECKED_BATCHES = (1, 3, 8)
LARGEST_FILE = 2_000_000_000
"""Bytes of weights; beyond, protobuf cannot hold the model in one file."""


class WholeTagger(nn.Module):
    """images (B, 3, S, S), RGB from 0 to 1 → probabilities (B, C), logits (B, C)."""

    mean: Tensor
    std: Tensor

    def __init__(self, tagger: Tagger):
        super().__init__()
        self.backbone, self.method = tagger.backbone, tagger.method
        for name, values in (("mean", tagger.backbone.mean), ("std", tagger.backbone.std)):
            self.register_buffer(name, torch.tensor(values, device=tagger.device)[:, None, None])

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.method(self.backbone((images - self.mean) / self.std))["logits"]
        return torch.sigmoid(logits), logits


@dataclass(frozen=True)
class Exported:
    path: Path
    difference: float
    """Largest difference from `predict` over `images` random images."""
    images: int
    megabytes: float


def export_onnx(run: str | Path, file: str | Path) -> Exported:
    """Write the run's model to `file`, once it has been seen to give what `predict` gives."""
    return export_tagger(load(run, "cpu"), Path(file))


def export_tagger(tagger: Tagger, file: Path) -> Exported:
    _check_possible(tagger, file)
    program = _program(tagger)
    program.model.metadata_props.update(card_of(tagger).to_metadata())
    with whole_file(file) as draft:
        program.save(draft, external_data=False)
        difference = largest_difference(tagger, draft)
        if not difference <= TOLERANCE:  # NaN is no agreement either
            raise UserError(
                f"{file} was not written: its probabilities differ from `fewtags predict` by {difference:.2g}, "
                f"more than {TOLERANCE:g}. Please report the backbone ({tagger.recipe.backbone}) and the method "
                f"({tagger.recipe.method})"
            )
    return Exported(file, difference, sum(CHECKED_BATCHES), file.stat().st_size / 1e6)


def card_of(tagger: Tagger) -> ModelCard:
    return ModelCard(
        categories=tagger.categories,
        decision_thresholds=tagger.labels.decision_thresholds,
        image_size=tagger.recipe.image_size,
        method=tagger.recipe.method,
        backbone=tagger.recipe.backbone,
        recipe_hash=tagger.recipe.hash(),
        fewtags_version=__version__,
    )


def largest_difference(tagger: Tagger, file: Path) -> float:
    """Between the file in ONNX Runtime and `predict`, over random images in batches of 1, 3 and 8."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    size = tagger.recipe.image_size
    found = []
    for count in CHECKED_BATCHES:
        images = random_images(size, count, seed=count)
        pixels = np.stack([np.asarray(image.resize((size, size), Image.Resampling.BILINEAR)) for image in images])
        inputs = {"images": pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255}
        (given,) = session.run(["probabilities"], inputs)
        found.append(np.abs(given - tagger.probabilities(images)).max())
    return float(np.max(found))


def random_images(size: int, count: int, seed: int) -> list[Image.Image]:
    """Noise from coarse to fine, smaller and larger than the network's square."""
    rng = np.random.default_rng(seed)
    sides = [(4, 3), (size, size), (2 * size, size + 1)]
    shapes = [(*sides[place % len(sides)], 3) for place in range(count)]
    return [Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)) for shape in shapes]


def _program(tagger: Tagger) -> Any:
    size = tagger.recipe.image_size
    try:
        with _quiet():
            return torch.onnx.export(
                WholeTagger(tagger).eval(),
                (torch.rand(2, 3, size, size),),
                input_names=["images"],
                output_names=["probabilities", "logits"],
                dynamic_shapes={"images": {0: torch.export.Dim("batch")}},
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    except Exception as problem:  # a backbone's code may raise whatever it likes while it is traced
        raise UserError(
            f"backbone {tagger.recipe.backbone} with method {tagger.recipe.method} cannot be exported to ONNX: "
            f"{(str(problem).strip() or repr(problem)).splitlines()[0]}"
        ) from problem


def _check_possible(tagger: Tagger, file: Path) -> None:
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise UserError(f"exporting needs {', '.join(missing)}: pip install 'fewtags[onnx]'")
    if file.suffix.lower() != ".onnx":
        raise UserError(f"--onnx {file}: name a file that ends in .onnx")
    if file.is_dir():
        raise UserError(f"--onnx {file}: this is a folder")
    weights = sum(tensor.nbytes for tensor in WholeTagger(tagger).state_dict().values())
    if weights > LARGEST_FILE:
        raise UserError(
            f"the model's weights take {weights / 1e9:.1f} GB, and an ONNX file holds {LARGEST_FILE / 1e9:g} GB; "
            "choose a smaller backbone"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter warns about its own insides."""
    chatty = logging.getLogger("onnxscript")
    level = chatty.level
    chatty.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        chatty.setLevel(level)
