"""fewtags trains an image tagger when most of the tags are missing, and fills the missing ones in.

import fewtags

run = fewtags.train("my-photos", method="hst", out="runs/mine")
tags = fewtags.load(run).predict(["photo.jpg"])
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewtags.errors import UserError
from fewtags.recipe import Recipe

if TYPE_CHECKING:
    from fewtags.predict import Tagger
    from fewtags.tags import Tag

__version__ = "0.1.0"
__all__ = ["Recipe", "Tag", "Tagger", "UserError", "__version__", "evaluate", "load", "train"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Classes that are heavy to import come when they are asked for."""
        if name not in ("Tag", "Tagger"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from fewtags import predict

        return getattr(predict, name)


def train(
    data: str | Path,
    *,
    out: str | Path,
    recipe: str | Path | Recipe = "default",
    tokens: str | None = None,
    resume: bool = False,
    init: str | Path | None = None,
    **settings: Any,
) -> Path:
    """Train on `data` into the run folder `out`; `settings` are recipe fields, such as method, known, epochs."""
    from fewtags.training.run import train as train_run

    chosen = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
    folder = train_run(str(data), chosen.replace(**settings), out, tokens=tokens, resume=resume, init=init)
    return folder.path


def load(run: str | Path, device: str = "auto") -> Tagger:
    """The trained model of a run folder: `load(run).predict(images)`."""
    from fewtags.predict import load as load_run

    return load_run(run, device)


def evaluate(run: str | Path, data: str | Path, split: str = "test") -> dict[str, Any]:
    """The metrics of a run on labelled data."""
    from fewtags.evaluation import evaluate as evaluate_run

    return evaluate_run(run, str(data), split)
