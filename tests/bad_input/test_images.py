"""Images of all kinds and with all kinds of damage: read as what they show, or refused with the file's name.

Every image has a colour that spells its number, and its labels spell the same number: wherever an image and its
labels come out of step, the numbers differ. Some hundred are tried at every test run, 1,200 by `make torture`.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fewtags.data import open_data
from fewtags.errors import BadImageError
from fewtags.images.loading import FolderImages
from fewtags.labels.formats import folder
from tests.bad_input.pictures import EITHER, REFUSED, SAME, WHOLE, Case, case
from tests.bad_input.test_label_files import no_hang

BITS = 4
STEP, FIRST = 60, 30
"""Colours far enough apart that JPEG and palettes cannot mix them up."""
CLOSE = 14


def colour_of(number: int) -> tuple[int, int, int]:
    """Shades of grey for every fourth, so that grey files can show them; else one of 64 colours."""
    if number % 4 == 0:
        return (FIRST + STEP * (number // 4 % 4),) * 3
    return tuple(FIRST + STEP * (number // 4**place % 4) for place in range(3))  # type: ignore[return-value]


def labels_of(number: int) -> list[str]:
    return [str(number >> bit & 1) for bit in range(6)]


def write_set(folder_: Path, seeds: range) -> dict[str, tuple[int, Case]]:
    """A data set of these images, numbered from 0; returns image → number and case."""
    (folder_ / "images").mkdir(parents=True)
    cases = {
        f"images/{made.name}": (n, made) for n, made in ((n, case(s, colour_of(n))) for n, s in enumerate(seeds))
    }
    with (folder_ / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "split", *(f"bit {bit}" for bit in range(6))])
        for image, (number, made) in cases.items():
            made.put(folder_ / image)
            rows.writerow([image, "train" if number % 3 else "test", *labels_of(number)])
    return cases


def opened(root: Path, image: str) -> Image.Image | BadImageError:
    try:
        with no_hang(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, about damaged metadata
            return FolderImages(root).open(image)
    except BadImageError as problem:
        return problem


def shows(picture: Image.Image, number: int) -> bool:
    middle = np.asarray(picture.resize((1, 1), Image.Resampling.BOX), np.float64)[0, 0]
    return bool((np.abs(middle - colour_of(number)) <= CLOSE).all())


def check_one(root: Path, image: str, number: int, made: Case) -> bool:
    """Whether it could be read; wrong if it should not, or shows something else."""
    about, found = f"{image!r}: {made.about}", opened(root, image)
    if isinstance(found, BadImageError):
        assert made.expected != SAME, f"{about}: refused: {found}"
        assert str(root / image) in str(found), about
        assert "Traceback" not in str(found)
        return False
    assert made.expected != REFUSED, f"{about}: read"
    assert found.mode == "RGB"
    assert min(found.size) >= 1
    if made.expected in (SAME, WHOLE):
        assert shows(found, number), f"{about}: shows something else"
    if made.expected == EITHER:
        with warnings.catch_warnings(), Image.open(root / image) as again:
            warnings.simplefilter("ignore")
            assert sorted(again.size) == sorted(found.size), about
    return True


def check_set(root: Path, seeds: range) -> tuple[int, int]:
    """(read, refused). Every image by itself, then the whole data set with bad images left out."""
    cases = write_set(root, seeds)
    files = {image for image in cases if (root / image).is_file()}
    readable = {image for image, (number, made) in cases.items() if check_one(root, image, number, made)}
    assert readable <= files
    keep_rows(root / "labels.csv", files)  # a label file that names no file is refused as such
    data = open_data(str(root), on_bad_image="skip")
    assert set(data.table.images) == readable
    assert {entry.image for entry in data.skipped} == files - readable
    for image, values, split in zip(data.table.images, data.table.values, data.table.splits, strict=True):
        number, made = cases[image]
        assert ["1" if value == 1 else "0" for value in values] == labels_of(number), image
        assert split == ("train" if number % 3 else "test")
        if made.expected in (SAME, WHOLE):
            assert shows(data.images.open(image), number), image
    return len(readable), len(cases) - len(readable)


def keep_rows(file: Path, images: set[str]) -> None:
    with file.open(newline="", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    columns = list(zip(*[row for row in rows if row[0] in images], strict=True))
    file.write_text(folder.csv_text(list(zip(header, columns, strict=True))), encoding="utf-8")


def test_a_sample_of_images(tmp_path: Path):
    ends = [check_set(tmp_path / str(start), range(start, start + 60)) for start in (0, 60, 120)]
    assert min(sum(end) for end in zip(*ends, strict=True)) > 40


@pytest.mark.torture
def test_1200_images(tmp_path: Path):
    ends = [check_set(tmp_path / str(start), range(start, start + 60)) for start in range(1000, 2200, 60)]
    read, refused = (sum(end) for end in zip(*ends, strict=True))
    print(f"\n1,200 images: {read} read rightly, {refused} refused")
    assert min(read, refused) > 300


def test_the_names_of_colours_and_labels_tell_images_apart():
    assert len({tuple(labels_of(number)) for number in range(60)}) == 60


@pytest.mark.parametrize("problem", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_a_file_that_may_not_be_read(problem: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")

    def refuse(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(Image, "open", refuse)
    with pytest.raises(BadImageError, match=rf"a\.png: the image cannot be read \({problem.strerror}\)"):
        FolderImages(tmp_path).open("a.png")
