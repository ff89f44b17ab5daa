"""`fewtags convert SRC DEST --to FORMAT`: any data set as a folder with labels.csv, or for another tool."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image
from rich.progress import track

from fewtags.convert_sparse import convert_sparse
from fewtags.data import Data, open_data
from fewtags.errors import Problems, UserError
from fewtags.files import whole_folder
from fewtags.images.loading import FolderImages
from fewtags.images.screening import SKIPPED, write_skipped
from fewtags.labels.formats.entries import count_unknown
from fewtags.labels.formats.layouts import Extras, layout
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import LabelTable

JPEG_QUALITY = 90
SAMPLE_STREAM = 4


def convert(
    spec: str,
    dest: Path,
    sample: tuple[int, int] | None = None,
    seed: int = 0,
    size: int | None = None,
    tokens: str | None = None,
    difficult: str = "unknown",
    progress: bool = True,
    to: str = "folder",
    suggestions: Path | None = None,
    prefix: str = "",
    image_root: Path | None = None,
    labels_only: bool = False,
    on_bad_image: str = "error",
    say: Callable[[str], object] = lambda sentence: None,
) -> Path:
    """Write SRC in another format, whole or not at all. Returns what holds the labels.

    `sample`: so many TRAIN, TEST images, drawn by the seed. `size`: images are squashed to size x size JPEG;
    without it, files are copied as they are. `suggestions`, `prefix`: see `label_studio_tasks.write`;
    `image_root`, `on_bad_image`: see `open_data`; `labels_only`: of sparse, images stay where they are. `say` is
    told how SRC was understood.
    """
    dest, form = Path(dest), layout(to)
    _check(dest, to, size, suggestions, prefix)
    if labels_only:
        _check_labels_only(to, sample, size, on_bad_image)
        return convert_sparse(spec, dest, tokens, difficult, seed, say)
    how = {"tokens": tokens, "difficult": difficult, "image_root": image_root, "on_bad_image": on_bad_image}
    data = open_data(spec, seed=seed, **how)  # type: ignore[arg-type]
    for note in data.notes:
        say(note)
    suggested = None if suggestions is None else read_suggested(suggestions, data.table)
    if sample is not None:
        data = replace(data, table=data.table.rows(sampled_rows(data.table, sample, seed)))
    names = new_names(data.table, ".jpg" if size else _kept_suffix(data), form.places)
    renamed = dict(zip(data.table.images, names, strict=True))
    extras = Extras(
        _sizes(data, size) if form.wants_sizes else (),
        prefix,
        None if suggested is None else {renamed[i]: s for i, s in suggested.items() if i in renamed},
    )
    with whole_folder(dest) as draft:
        form.write(replace(data.table, images=tuple(names)), draft, extras)
        _write_images(data, names, draft, size, progress)
        write_skipped(data.skipped, draft / SKIPPED)
    return dest / form.labels


def _check(dest: Path, to: str, size: int | None, suggestions: Path | None, prefix: str) -> None:
    if dest.exists() and (not dest.is_dir() or any(dest.iterdir())):
        raise UserError(f"{dest}: is there already and not empty; choose another folder")
    if size is not None and size < 1:
        raise UserError(f"--size {size}: a side is at least 1 pixel")
    for flag, given in (("--suggestions", suggestions), ("--prefix", prefix)):
        if given and to != "label-studio":
            raise UserError(f"{flag} {given}: only for --to label-studio")


def _check_labels_only(to: str, sample: tuple[int, int] | None, size: int | None, on_bad_image: str) -> None:
    if on_bad_image == "skip":
        raise UserError("--labels-only looks at no image: leave bad ones out when training, --on-bad-image skip")
    if to != "sparse" or sample is not None or size is not None:
        raise UserError("--labels-only is for --to sparse, of all images, without --sample and --size")


def read_suggested(file: Path, table: LabelTable) -> dict[str, dict[str, tuple[float, str]]]:
    """Image → category → (probability, decision) of a file that `fewtags complete` wrote."""
    from fewtags.completion.suggestions import read_suggestions

    columns = read_suggestions(file).select(["image", "category", "probability", "decision"]).to_pydict()
    problems = Problems(str(file))
    for name, known in (("image", table.images), ("category", table.categories)):
        mentions = ((cell, f"row {row}") for row, cell in enumerate(columns[name], start=1))
        count_unknown(mentions, known, f"{name} {{name}} is not in the data", problems)
    problems.raise_if_any()
    found: dict[str, dict[str, tuple[float, str]]] = {}
    for image, category, probability, decision in zip(*columns.values(), strict=True):
        found.setdefault(image, {})[category] = probability, decision
    return found


def _sizes(data: Data, size: int | None) -> list[tuple[int, int]]:
    """Width and height of every image as it will be written; of a file, only the head is read."""
    if size is not None:
        return [(size, size)] * len(data.table)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(lambda image: _size(data, image), data.table.images))


def _size(data: Data, image: str) -> tuple[int, int]:
    if not isinstance(data.images, FolderImages):
        return data.images.open(image).size
    try:
        with Image.open(data.images.path(image)) as picture:
            return picture.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return data.images.open(image).size  # its error says what is wrong with the file


def parse_sample(text: str | None) -> tuple[int, int] | None:
    """`10000,4000` → (10000, 4000)"""
    if text is None:
        return None
    train, comma, test = text.partition(",")
    if not (comma and train.strip().isdecimal() and test.strip().isdecimal()):
        raise UserError(f"--sample {text}: write it as TRAIN,TEST, such as 10000,4000")
    return int(train), int(test)


def sampled_rows(table: LabelTable, sample: tuple[int, int], seed: int) -> np.ndarray:
    """Rows of the drawn images, in the table's order."""
    generator = np.random.default_rng((SAMPLE_STREAM, seed))
    splits = np.array(table.splits, dtype=object)
    drawn = []
    for split, count in zip((TRAIN, TEST), sample, strict=True):
        rows = np.flatnonzero(splits == split)
        if not 0 <= count <= len(rows):
            raise UserError(f"--sample {sample[0]},{sample[1]}: there are {len(rows)} {split} images")
        drawn.append(generator.permutation(rows)[:count])
    return np.sort(np.concatenate(drawn))


def _write_images(data: Data, names: Sequence[str], target: Path, size: int | None, progress: bool) -> None:
    for parent in {(target / name).parent for name in names}:
        parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        jobs = [
            threads.submit(_write_image, data, image, target / name, size)
            for image, name in zip(data.table.images, names, strict=True)
        ]
        try:
            for job in track(jobs, "Writing images", disable=not progress, transient=True):
                job.result()
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def _kept_suffix(data: Data) -> str | None:
    """Files keep their suffix; images that are made on the fly become PNG, which loses nothing."""
    return None if isinstance(data.images, FolderImages) else ".png"


def new_names(table: LabelTable, suffix: str | None, places: Mapping[str, str]) -> list[str]:
    """Paths below the place of each split: the same names, the folder dropped where names alone are distinct."""
    above = [places[split] for split in table.splits]
    paths = [PurePosixPath(image) for image in table.images]
    if len({path.stem if suffix else path.name for path in paths}) == len(paths):
        paths = [PurePosixPath(path.name) for path in paths]
    names = [str(path.with_suffix(suffix) if suffix else path) for path in paths]
    if len(set(names)) < len(names):  # a.jpg and a.png in one folder: a.jpg.jpg, a.png.jpg
        names = [f"{path}{suffix or ''}" for path in paths]
    return [f"{place}/{name}" for place, name in zip(above, names, strict=True)]


def _write_image(data: Data, image: str, target: Path, size: int | None) -> None:
    if size is not None:
        picture = data.images.open(image).resize((size, size), Image.Resampling.BICUBIC)
        picture.save(target, quality=JPEG_QUALITY)
    elif isinstance(data.images, FolderImages):
        shutil.copyfile(data.images.path(image), target)
    else:
        data.images.open(image).save(target)
