"""What a model expects and what its outputs mean: kept in an exported file's metadata, shown by a server.

No torch in here: an exported model is served without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fewtags.errors import UserError

INPUT = "images: float32 (N, 3, image_size, image_size), RGB, 0 to 1; the graph normalises them itself"
RESIZE = "squash to image_size x image_size, bilinear with antialiasing (Pillow: resize with BILINEAR)"


class ModelCard(BaseModel):
    model_config = ConfigDict(extra="ignore")

    categories: Annotated[list[str], Field(min_length=1)]
    """In the order of the outputs' columns."""
    decision_thresholds: list[Annotated[float, Field(ge=0, le=1)]]
    """Probability from which a category is called present, one per category."""
    image_size: Annotated[int, Field(ge=1, le=8192)]
    input: str = INPUT
    resize: str = RESIZE
    method: str
    backbone: str
    recipe_hash: str
    """Short name of the settings that the model was trained with."""
    fewtags_version: str

    @model_validator(mode="after")
    def _one_threshold_each(self) -> Self:
        if len(self.categories) != len(self.decision_thresholds):
            raise ValueError("categories and decision_thresholds differ in number")
        return self

    def to_metadata(self) -> dict[str, str]:
        """Text by key: lists as JSON, all else as it is."""
        fields = self.model_dump()
        return {
            key: json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)
            for key, value in fields.items()
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str], file: object) -> ModelCard:
        lists = ("categories", "decision_thresholds")
        try:
            return cls(**(dict(metadata) | {key: json.loads(metadata[key]) for key in lists}))  # type: ignore[arg-type]
        except (KeyError, ValueError, TypeError, RecursionError) as problem:
            raise UserError(
                f"{file}: its metadata do not say what fewtags writes there ({_short(problem)}); "
                "export it with `fewtags export RUN --onnx FILE`"
            ) from problem


def _short(problem: Exception) -> str:
    if isinstance(problem, ValidationError):
        first = problem.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'metadata'}: {first['msg']}"
    return f"no {problem}" if isinstance(problem, KeyError) else str(problem)
