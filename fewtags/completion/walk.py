"""One walk over the images of DATA: scores, evidence, and the known images that each resembles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor

from fewtags.completion.calibration import Entries
from fewtags.completion.evidence import Seen, look, most_similar
from fewtags.completion.kept import Gallery
from fewtags.completion.known import Known
from fewtags.data import Data
from fewtags.finite import require_cached
from fewtags.predict import Tagger, check_scores
from fewtags.processes import together
from fewtags.training.prepare import backbone_maps

NEIGHBOURS = 3


@dataclass
class Walked:
    """Of n images and C categories."""

    logits: np.ndarray
    plain: np.ndarray
    intra: np.ndarray
    cross: np.ndarray
    """(n, C) each; NaN: no evidence."""
    places: np.ndarray | None
    """(n, C, 3) places in the gallery of the category, -1: none."""
    cosines: np.ndarray | None
    """(n, C, 3)"""
    witnesses: dict[int, tuple[np.ndarray, np.ndarray]]
    """Row → known present categories (J,) and what they say of every category, (J, C) float16."""

    def entries(self, rows: np.ndarray, category: np.ndarray) -> Entries:
        chosen = rows, category
        return Entries(category, self.logits[chosen], self.plain[chosen], self.intra[chosen], self.cross[chosen])


def walk(tagger: Tagger, data: Data, known: Known, gallery: Gallery | None, console: Console) -> Walked:
    images, categories = known.labels.shape
    walked = _empty(images, categories, gallery)
    vectors = None if gallery is None else gallery.features.to(tagger.device)
    seen = [np.zeros(0, np.int64)]
    for rows, outputs in _outputs(tagger, data, known, console):
        check_scores(outputs["logits"], [data.table.images[row] for row in rows])
        labels = torch.from_numpy(known.labels[rows]).float().to(tagger.device)
        _take(walked, rows, look(tagger.method, outputs, labels), vectors)
        seen.append(rows)
    _gather(walked, np.concatenate(seen))
    return walked


def _gather(walked: Walked, rows: np.ndarray) -> None:
    """Fill in what other processes have seen; `rows` are those that this one has."""
    if together.size() == 1:
        return
    everyones = together.all_array_rows(rows)
    scores = walked.logits, walked.plain, walked.intra, walked.cross
    for array in (*scores, walked.places, walked.cosines):
        if array is not None:
            array[everyones] = together.all_array_rows(array[rows])
    for witnesses in together.said_by_all(walked.witnesses):
        walked.witnesses |= witnesses


def _empty(images: int, categories: int, gallery: Gallery | None) -> Walked:
    logits, plain, intra, cross = (np.full((images, categories), np.nan, np.float32) for _ in range(4))
    if gallery is None:
        return Walked(logits, plain, intra, cross, None, None, {})
    shape = images, categories, min(NEIGHBOURS, gallery.features.shape[1])
    places, cosines = np.full(shape, -1, np.int16), np.zeros(shape, np.float16)
    return Walked(logits, plain, intra, cross, places, cosines, {})


def _take(walked: Walked, rows: np.ndarray, seen: Seen, gallery: Tensor | None) -> None:
    walked.logits[rows], walked.plain[rows] = seen.logits, seen.plain
    walked.intra[rows], walked.cross[rows] = seen.intra, seen.cross
    if seen.features is not None and gallery is not None:
        assert walked.places is not None
        assert walked.cosines is not None
        walked.places[rows], walked.cosines[rows] = most_similar(seen.features, gallery, walked.places.shape[2])
    witnesses = seen.witnesses
    for image in np.unique(witnesses.image):
        own = witnesses.image == image
        said = witnesses.likelihood[own].astype(np.float16)
        walked.witnesses[int(rows[image])] = (witnesses.category[own], said)


@torch.no_grad()
def _outputs(
    tagger: Tagger, data: Data, known: Known, console: Console
) -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
    """Rows of a batch and the network's outputs; features of a frozen backbone come from the cache.

    Several processes share the batches: each image is in the same one as with one process.
    """
    size = tagger.recipe.batch_size
    for rows, views in _groups(known, tagger.recipe.views):
        images = [data.table.images[row] for row in rows]
        own = together.own_share(len(rows), size)
        starts = range(own.start, own.stop, size)
        if not tagger.recipe.freeze_backbone:
            shown = track(images[own.start : own.stop], "Reading", console=console, transient=True)
            pictures = (data.images.open(image) for image in shown)
            yield from zip((rows[s : s + size] for s in starts), tagger.outputs(pictures), strict=True)
            continue
        rest = tagger.recipe, views, tagger.device, console
        maps = backbone_maps(data.images, images, tagger.backbone, *rest)
        for start in starts:
            part = np.ascontiguousarray(maps[start : start + size, 0], dtype=np.float32)
            require_cached(part, images[start : start + size], maps)
            yield rows[start : start + size], tagger.method(torch.from_numpy(part).to(tagger.device))


def _groups(known: Known, views: Sequence[str]) -> list[tuple[np.ndarray, tuple[str, ...]]]:
    """(rows, views) to look at: training images with the views that training has cached, the others plain.

    Images with nothing to fill are left out, unless they are training images, whose features are there already.
    """
    others = np.setdiff1d(np.flatnonzero(known.to_fill.any(1)), known.trained)
    groups: list[tuple[np.ndarray, tuple[str, ...]]] = [(known.trained, tuple(views)), (others, ("plain",))]
    return [(rows, kind) for rows, kind in groups if len(rows)]
