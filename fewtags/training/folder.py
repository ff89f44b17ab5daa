"""The run folder: everything that predicting, completing, resuming or reproducing needs, and no pickle.

recipe.yaml · labels.json (categories, data, decision thresholds) · model.safetensors (backbone and method) ·
metrics.json · history.csv · checkpoints/ · logs/ (TensorBoard) · examples/ · report.html ·
completion/ (what completing needs: held-out labels with their scores, features of known images)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from fewtags.errors import UserError
from fewtags.files import whole_file, write_text
from fewtags.recipe import Recipe

MODEL = "model.safetensors"


class Labels(BaseModel):
    """labels.json: what the model's outputs mean."""

    model_config = ConfigDict(extra="forbid")

    categories: list[str]
    decision_thresholds: list[float]
    """Probability from which `predict` calls a category present."""
    decision_thresholds_from: str
    """What they were fitted on, in words."""
    data: str
    """The DATA that the run was trained on."""
    tokens: str | None = None
    channels: int
    """Channels of the backbone's map."""
    word_size: int | None = None
    """Size of the word vectors given; None: learned."""


class RunFolder:
    def __init__(self, path: str | Path):
        self.path = Path(path)

    def recipe(self) -> Recipe:
        return Recipe.load(self._existing("recipe.yaml"))

    def labels(self) -> Labels:
        path = self._existing("labels.json")
        try:
            return Labels.model_validate_json(path.read_text(encoding="utf-8"))
        except (ValidationError, UnicodeDecodeError) as problem:
            raise UserError(f"{path}: damaged or not written by fewtags: {problem}") from problem

    def metrics(self) -> dict[str, Any]:
        return json.loads(self._existing("metrics.json").read_text(encoding="utf-8"))

    def is_complete(self) -> bool:
        return (self.path / "metrics.json").is_file()

    def write_recipe(self, recipe: Recipe) -> None:
        write_text(self.path / "recipe.yaml", recipe.to_yaml())

    def write_labels(self, labels: Labels) -> None:
        write_text(self.path / "labels.json", labels.model_dump_json(indent=2))

    def write_metrics(self, metrics: dict[str, Any]) -> None:
        write_text(self.path / "metrics.json", json.dumps(metrics, indent=2))

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
        except SafetensorError as problem:
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
