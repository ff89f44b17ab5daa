"""Use a trained run: `load(run).predict(images)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from rich.console import Console
from rich.progress import track
from torch import Tensor

from fewtags.errors import UserError
from fewtags.files import whole_file
from fewtags.images.loading import FolderImages, list_images
from fewtags.images.transforms import evaluation_transform
from fewtags.methods import METHODS, Method, Setting
from fewtags.methods.variants import VARIANTS, method_class
from fewtags.nn.backbones import Backbone, build_backbone
from fewtags.recipe import Recipe
from fewtags.tags import Tag, chosen_tags
from fewtags.training.folder import Labels, RunFolder
from fewtags.training.prepare import choose_device

ImageLike = str | Path | Image.Image


class Tagger:
    """A trained model, ready to use."""

    def __init__(self, recipe: Recipe, labels: Labels, backbone: Backbone, method: Method, device: torch.device):
        self.recipe, self.labels = recipe, labels
        self.backbone, self.method, self.device = backbone, method, device
        self.transform = evaluation_transform(recipe.image_size, backbone.mean, backbone.std)

    @property
    def categories(self) -> list[str]:
        return self.labels.categories

    def predict(
        self, images: Iterable[ImageLike], *, top: int | None = None, threshold: float | None = None
    ) -> list[list[Tag]]:
        """Per image its tags, most likely first.

        Without `top` and `threshold`, each category's own decision threshold (fitted on held-out labels) decides.
        """
        return [self.tags(row, top, threshold) for row in self.probabilities(images)]

    def tags(self, probabilities: np.ndarray, top: int | None = None, threshold: float | None = None) -> list[Tag]:
        """(C,) probabilities → the tags that pass."""
        return chosen_tags(probabilities, self.categories, self.labels.decision_thresholds, top, threshold)

    def probabilities(self, images: Iterable[ImageLike]) -> np.ndarray:
        """(images, categories)."""
        rows = [torch.sigmoid(outputs["logits"]).cpu().numpy() for outputs in self.outputs(images)]
        return np.concatenate(rows) if rows else np.zeros((0, len(self.categories)), np.float32)

    @torch.no_grad()
    def probabilities_of_maps(self, maps: np.ndarray) -> np.ndarray:
        """(images, channels, H, W) cached maps of this backbone → (images, categories)."""
        rows = []
        for start in range(0, len(maps), self.recipe.batch_size):
            part = np.ascontiguousarray(maps[start : start + self.recipe.batch_size], dtype=np.float32)
            rows.append(torch.sigmoid(self.method(torch.from_numpy(part).to(self.device))["logits"]).cpu().numpy())
        return np.concatenate(rows)

    @torch.no_grad()
    def outputs(self, images: Iterable[ImageLike]) -> Iterator[dict[str, Tensor]]:
        """The network's outputs, batch by batch."""
        for batch in _batches(images, self.recipe.batch_size):
            inputs = torch.stack([self.transform(opened(image)) for image in batch]).to(self.device)
            yield self.method(self.backbone(inputs))


def load(run: str | Path, device: str = "auto") -> Tagger:
    """The model of a run folder. Nothing in the folder is executed: safetensors, YAML and JSON only."""
    folder = RunFolder(run)
    recipe, labels = folder.recipe(), folder.labels()
    chosen = choose_device(device)
    backbone = build_backbone(recipe.backbone, pretrained=False)
    _fill(backbone, folder, "backbone")
    method = _empty_method(recipe, labels)
    _fill(method, folder, "method")
    return Tagger(recipe, labels, backbone.eval().to(chosen), method.eval().to(chosen), chosen)


def _empty_method(recipe: Recipe, labels: Labels) -> Method:
    """The run's network with weights still to be filled in."""
    if recipe.method not in METHODS and recipe.method not in VARIANTS:
        raise UserError(f"the run was trained with method {recipe.method!r}, which this version does not have")
    nothing_known = torch.zeros(1, len(labels.categories))
    words = None if labels.word_size is None else torch.zeros(len(labels.categories), labels.word_size)
    setting = Setting(recipe, tuple(labels.categories), labels.channels, nothing_known, words)
    return method_class(recipe.method)(setting)


def _fill(module: torch.nn.Module, folder: RunFolder, part: str) -> None:
    try:
        module.load_state_dict(folder.tensors(part))
    except RuntimeError as problem:
        raise UserError(
            f"{folder.path}: its weights do not fit its recipe; were the files mixed up? {str(problem)[:300]}"
        ) from problem


def opened(image: ImageLike) -> Image.Image:
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    path = Path(image)
    return FolderImages(path.parent).open(path.name)


def image_files(paths: Sequence[str | Path]) -> list[Path]:
    """The images named, and those inside folders named."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [path / name for name in list_images(path)]
            if not inside:
                raise UserError(f"{path}: there is no image in this folder")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise UserError(f"{path}: no such file or folder")
    return found


def prediction_table(images: Sequence[Path], predictions: Sequence[Sequence[Tag]]) -> pd.DataFrame:
    """One row per image and tag: image, category, probability."""
    rows = [
        (str(image), tag.category, round(tag.probability, 6))
        for image, tags in zip(images, predictions, strict=True)
        for tag in tags
    ]
    return pd.DataFrame(rows, columns=["image", "category", "probability"])


def write_predictions(table: pd.DataFrame, out: Path) -> None:
    """To .csv, .parquet or .json, by the file's ending."""
    writers = {
        ".csv": lambda path: table.to_csv(path, index=False),
        ".parquet": lambda path: table.to_parquet(path, index=False),
        ".json": lambda path: table.to_json(path, orient="records", indent=2, force_ascii=False),
    }
    if out.suffix.lower() not in writers:
        raise UserError(f"--out {out}: write .csv, .parquet or .json")
    with whole_file(out) as draft:
        writers[out.suffix.lower()](draft)


def _batches(items: Iterable[ImageLike], size: int) -> Iterator[list[ImageLike]]:
    batch: list[ImageLike] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def predict_files(
    tagger: Tagger,
    files: Sequence[Path],
    *,
    top: int | None,
    threshold: float | None,
    console: Console,
) -> list[list[Tag]]:
    """`Tagger.predict` with a progress bar."""
    shown = track(files, "Tagging", console=console, transient=True, disable=len(files) < 64)
    return tagger.predict(shown, top=top, threshold=threshold)


def show_predictions(files: Sequence[Path], predictions: Sequence[Sequence[Tag]], console: Console) -> None:
    """One line per image: `photo.jpg  dog 0.93, person 0.71`."""
    for file, tags in zip(files, predictions, strict=True):
        line = ", ".join(f"{tag.category} {tag.probability:.2f}" for tag in tags) or "no tag"
        console.print(f"{file}  {line}", soft_wrap=True, highlight=False, markup=False)
