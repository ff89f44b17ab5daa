"""The run folder: everything that predicting, completing, resuming or reproducing needs, and no pickle.

recipe.yaml · labels.json (categories, data, decision thresholds) · model.safetensors (backbone and method) ·
test_predictions.parquet · metrics.json · history.csv · checkpoints/ · logs/ (TensorBoard) · examples/ ·
report.html · completion/ (what completing needs: held-out labels with their scores, features of known images)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from fewtags.errors import UserError
from fewtags.files import whole_file, write_text
from fewtags.recipe import Recipe
from fewtags.untrusted import read_json, refuse_links_outside

MODEL = "model.safetensors"
PREDICTIONS = "test_predictions.parquet"


class Labels(BaseModel):
    """labels.json: what the model's outputs mean."""

    model_config = ConfigDict(extra="forbid")

    categories: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    decision_thresholds: list[Annotated[float, Field(ge=0, le=1)]]
    """Probability from which `predict` calls a category present."""
    decision_thresholds_from: str
    """What they were fitted on, in words."""
    data: str
    """The DATA that the run was trained on."""
    tokens: str | None = None
    channels: Annotated[int, Field(ge=1, le=1_000_000)]
    """Channels of the backbone's map."""
    word_size: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Size of the word vectors given; None: learned."""
    backbone_classes: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """How many of the classes that the backbone was trained on the method reads."""

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        if len(self.categories) != len(self.decision_thresholds):
            raise ValueError("categories and decision_thresholds differ in number")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("a category is there twice")
        return self


class RunFolder:
    def __init__(self, path: str | Path):
        self.path = Path(path)

    def recipe(self) -> Recipe:
        refuse_links_outside(self.path)
        return Recipe.load(self._existing("recipe.yaml"))

    def labels(self) -> Labels:
        path = self._existing("labels.json")
        content = read_json(path)
        try:
            return Labels.model_validate(content)
        except ValidationError as problem:
            first = problem.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UserError(f"{path}: damaged or not written by fewtags: {where} {first['msg']}") from problem

    def metrics(self) -> dict[str, Any]:
        return read_json(self._existing("metrics.json"))

    def is_complete(self) -> bool:
        return (self.path / "metrics.json").is_file()

    def write_recipe(self, recipe: Recipe) -> None:
        write_text(self.path / "recipe.yaml", recipe.to_yaml())

    def write_labels(self, labels: Labels) -> None:
        write_text(self.path / "labels.json", labels.model_dump_json(indent=2))

    def write_metrics(self, metrics: dict[str, Any]) -> None:
        write_text(self.path / "metrics.json", json.dumps(metrics, indent=2))

    def write_predictions(self, images: Sequence[str], probabilities: np.ndarray) -> None:
        """Of the images that the run was scored on: (images, categories), in the order of labels.json."""
        values = pa.array(probabilities.astype(np.float32).ravel())
        rows = pa.FixedSizeListArray.from_arrays(values, probabilities.shape[1])
        with whole_file(self.path / PREDICTIONS) as draft:
            pq.write_table(pa.table({"image": list(images), "probabilities": rows}), draft)

    def predictions(self) -> tuple[list[str], np.ndarray]:
        """The images that the run was scored on, and their probabilities (images, categories)."""
        table = pq.read_table(self._existing(PREDICTIONS))
        values = table["probabilities"].combine_chunks().flatten().to_numpy()
        return table["image"].to_pylist(), values.reshape(len(table), -1)

    def save_model(self, backbone: nn.Module, method: nn.Module) -> None:
        parts = {"backbone": backbone, "method": method}
        tensors = {
            f"{name}.{key}": value.detach().cpu().contiguous()
            for name, part in parts.items()
            for key, value in part.state_dict().items()
        }
        with whole_file(self.path / MODEL) as draft:
            save_file(tensors, draft)

    def tensors(self, part: str) -> dict[str, Tensor]:
        """The saved tensors of "backbone" or "method"."""
        path = self._existing(MODEL)
        try:
            tensors = load_file(path)
        except (SafetensorError, OSError, ValueError) as problem:
            raise UserError(f"{path}: damaged or not a safetensors file: {problem}") from problem
        return {
            key.removeprefix(f"{part}."): value for key, value in tensors.items() if key.startswith(f"{part}.")
        }

    def _existing(self, name: str) -> Path:
        path = self.path / name
        if path.is_file():
            return path
        if not self.path.is_dir():
            raise UserError(f"{self.path}: no such run folder")
        raise UserError(f"{path}: missing; is {self.path} a run folder, and has its training finished?")
