"""A program of somebody who uses fewtags: mypy checks it as strictly as it can (see tests/test_typing.py)."""

from __future__ import annotations

from pathlib import Path

import fewtags
from fewtags import Recipe, Tag, Tagger, UserError


def train_and_tag(data: Path, out: Path, photos: list[Path]) -> dict[str, float]:
    recipe: Recipe = Recipe.load("default").replace(epochs=2)
    run: Path = fewtags.train(data, out=out, recipe=recipe, method="plain", known=0.5)
    tagger: Tagger = fewtags.load(run, device="cpu")
    tags: list[list[Tag]] = tagger.predict(photos, top=3)
    return {tag.category: tag.probability for found in tags for tag in found}


def score(run: Path, data: Path) -> float | None:
    try:
        metrics = fewtags.evaluate(run, data, split="test")
    except UserError as mistake:
        print(mistake)
        return None
    return float(metrics["mAP"])


def version() -> str:
    return fewtags.__version__
