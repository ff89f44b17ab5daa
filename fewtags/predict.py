"""Use a trained run: `load(run).predict(images)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from PIL import Image
from rich.console import Console
from rich.progress import track
from torch import Tensor

from fewtags.errors import BadImageError, UserError, printable
from fewtags.files import whole_file
from fewtags.finite import require_cached, require_finite
from fewtags.images.loading import FolderImages, list_images
from fewtags.images.screening import Skipped
from fewtags.images.transforms import evaluation_transform
from fewtags.methods import Method
from fewtags.nn.backbones import Backbone
from fewtags.processes import together
from fewtags.recipe import Recipe
from fewtags.tags import Tag, chosen_tags
from fewtags.training.folder import Labels, RunFolder
from fewtags.training.networks import filled_networks
from fewtags.training.prepare import choose_device

ImageLike = str | Path | Image.Image


class Predicted(NamedTuple):
    files: list[Path]
    tags: list[list[Tag]]
    """Of each of the files."""
    skipped: list[Skipped]


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
    def probabilities_of_maps(self, maps: np.ndarray, images: Sequence[str]) -> np.ndarray:
        """(images, channels, H, W) cached maps of this backbone, of these images → (images, categories)."""
        rows = []
        for start in range(0, len(maps), self.recipe.batch_size):
            chosen = slice(start, start + self.recipe.batch_size)
            part = np.ascontiguousarray(maps[chosen], dtype=np.float32)
            require_cached(part, images[chosen], maps)
            rows.append(torch.sigmoid(self.method(torch.from_numpy(part).to(self.device))["logits"]).cpu().numpy())
        return np.concatenate(rows)

    @torch.no_grad()
    def outputs(self, images: Iterable[ImageLike]) -> Iterator[dict[str, Tensor]]:
        """The network's outputs, batch by batch."""
        for batch in _batches(images, self.recipe.batch_size):
            inputs = torch.stack([self.transform(opened(image)) for image in batch]).to(self.device)
            outputs = self.method(self.backbone(inputs))
            check_scores(outputs["logits"], [_name_of(image) for image in batch])
            yield outputs


def load(run: str | Path, device: str = "auto") -> Tagger:
    """The model of a run folder. Nothing in the folder is executed: safetensors, YAML and JSON only."""
    folder = RunFolder(run)
    recipe, labels = folder.recipe(), folder.labels()
    chosen = choose_device(device)
    backbone, method = filled_networks(folder, recipe, labels)
    return Tagger(recipe, labels, backbone.eval().to(chosen), method.eval().to(chosen), chosen)


def check_scores(logits: Tensor, images: Sequence[str]) -> None:
    """(B, C) scores of B images: a UserError where any is no finite number."""
    require_finite(logits.detach().cpu().numpy(), images, "the model's scores", "its weights or these are damaged")


def _name_of(image: ImageLike) -> str:
    if isinstance(image, Image.Image):
        return str(getattr(image, "filename", "") or "an opened image")
    return str(image)


def opened(image: ImageLike) -> Image.Image:
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    path = Path(image)
    return FolderImages(path.parent).open(path.name)


def image_files(paths: Sequence[str | Path]) -> list[Path]:
    """The images named, and those inside folders named."""
    return [file for path in map(Path, paths) for file in _files_of(path)]


def _files_of(path: Path) -> list[Path]:
    named = printable(str(path))
    if named != str(path):
        raise UserError(f"{named}: is not named in UTF-8; rename it")
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError) as problem:
        raise UserError(f"{named}: no such file or folder ({problem})") from problem
    if is_file:
        return [path]
    if not is_folder:
        raise UserError(f"{named}: no such file or folder")
    inside = [path / name for name in list_images(path)]
    if not inside:
        raise UserError(f"{named}: there is no image in this folder")
    return inside


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
    on_bad_image: str | None = None,
) -> Predicted:
    """`Tagger.predict` with a progress bar; with `on_bad_image` "skip", only of the images that can be read.

    Several processes share the images, in the batches that one would make.
    """
    own = together.own_share(len(files), tagger.recipe.batch_size)
    mine = files[own.start : own.stop]
    silent = len(files) < 64 or not together.is_writer()
    shown = track(mine, "Tagging", console=console, transient=True, disable=silent)
    kept, skipped = list(mine), list[Skipped]()
    pictures: Iterable[ImageLike] = shown
    if (on_bad_image or tagger.recipe.on_bad_image) == "skip":
        kept = []
        pictures = _readable(shown, kept, skipped)
    tags = tagger.predict(pictures, top=top, threshold=threshold)
    parts = together.said_by_all(Predicted(kept, tags, skipped))
    found = Predicted(*([item for part in column for item in part] for column in zip(*parts, strict=True)))
    if files and not found.files:
        raise UserError(f"none of the {len(files)} images can be read; {found.skipped[0].reason}")
    return found


def _readable(files: Iterable[Path], kept: list[Path], skipped: list[Skipped]) -> Iterator[Image.Image]:
    """The pictures that can be read; each file goes to one of the two lists."""
    for file in files:
        try:
            picture = opened(file)
        except BadImageError as problem:
            skipped.append(Skipped(str(file), str(problem)))
            continue
        kept.append(file)
        yield picture


def show_predictions(files: Sequence[Path], predictions: Sequence[Sequence[Tag]], console: Console) -> None:
    """One line per image: `photo.jpg  dog 0.93, person 0.71`."""
    for file, tags in zip(files, predictions, strict=True):
        line = ", ".join(f"{tag.category} {tag.probability:.2f}" for tag in tags) or "no tag"
        console.print(f"{file}  {line}", soft_wrap=True, highlight=False, markup=False)
