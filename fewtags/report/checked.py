"""What files of a run folder must hold for a page to be made of them: values of these types, and whatever else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from fewtags.errors import UserError
from fewtags.untrusted import read_json

Number = float | None
LENIENT = ConfigDict(extra="allow")


def _rectangular(rows: list[list[float]]) -> list[list[float]]:
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise ValueError("rows of one length were expected")
    return rows


Matrix = Annotated[list[list[float]], AfterValidator(_rectangular)]


@with_config(LENIENT)
class Metrics(TypedDict, total=False):
    """metrics.json"""

    method: str | None
    data: str | None
    known: Number
    seed: int | None
    seconds: Number
    mAP: Number
    mAP_voc: Number
    OF1: Number
    CF1: Number
    OF1_top3: Number
    CF1_top3: Number
    per_category: dict[str, Number] | None
    categories_without_positives: list[str] | None


@with_config(LENIENT)
class Labels(TypedDict, total=False):
    """labels.json"""

    data: str | None
    categories: list[str]
    decision_thresholds: list[Number] | dict[str, Number] | None


@with_config(LENIENT)
class Settings(TypedDict, total=False):
    """recipe.yaml"""

    method: str | None
    known: Number
    seed: int | None


@with_config(LENIENT)
class Filled(TypedDict):
    category: str
    module: str
    evidence: NotRequired[Number]
    right: NotRequired[bool | None]


@with_config(LENIENT)
class Predicted(TypedDict):
    category: str
    probability: float


@with_config(LENIENT)
class Attention(TypedDict):
    category: str
    kind: str
    map: Matrix


@with_config(LENIENT)
class Image(TypedDict):
    file: Any
    """Looked at more closely when it is opened."""
    name: NotRequired[str]
    known_present: NotRequired[list[str]]
    known_absent: NotRequired[list[str]]
    hidden_present: NotRequired[list[str] | None]
    filled: NotRequired[list[Filled]]
    predicted: NotRequired[list[Predicted]]
    attention: NotRequired[list[Attention]]


@with_config(LENIENT)
class Cooccurrence(TypedDict):
    image: Any
    categories: list[str]
    matrices: dict[str, Matrix | None]


def _of_its_categories(found: Cooccurrence) -> Cooccurrence:
    size = len(found["categories"])
    for name, matrix in found["matrices"].items():
        if matrix is not None and (len(matrix), len(matrix[0])) != (size, size):
            raise ValueError(f"{name} is {len(matrix)} × {len(matrix[0])} for {size} categories")
    return found


@with_config(LENIENT)
class Examples(TypedDict, total=False):
    """examples/examples.json"""

    images: list[Image]
    cooccurrence: Annotated[Cooccurrence, AfterValidator(_of_its_categories)] | None


def read_checked(path: Path, kind: type) -> dict[str, Any]:
    """The object in a JSON file, or {} where there is no file; a UserError where a value cannot be shown."""
    return checked(read_json(path), path, kind) if path.is_file() else {}


def checked(content: dict[str, Any], path: Path, kind: type) -> dict[str, Any]:
    try:
        TypeAdapter(kind).validate_python(content, strict=True)
    except ValidationError as problem:
        first = problem.errors()[0]
        where, what = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise UserError(
            f"{path}: {where}: {what.lower()}; the file is damaged or not written by fewtags"
        ) from problem
    return content
