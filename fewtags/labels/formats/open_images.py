"""Open Images: human-verified image-level labels (ImageID, Source, LabelName, Confidence 1 or 0).

What nobody verified is unknown. The folder holds the label files of each part under their official names
(`*train-annotations-human-imagelabels*.csv`, so too for validation and test), one
`*class-descriptions*.csv` that says which categories count and what they are called, and the images in
train/, validation/ and test/. Few people have all nine million images: those that are in the folders count.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as csv_reader

from fewtags.errors import Problems, UserError
from fewtags.files import write_text
from fewtags.labels.formats import provenance
from fewtags.labels.formats.loaded import Loaded, first_line, read_text
from fewtags.labels.formats.writing import require_images_like, require_names, require_once
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable

KEY = ["ImageID", "LabelName"]
COLUMNS = [*KEY, "Confidence"]
SUFFIXES = (".jpg", ".jpeg", ".png")
VERIFIED = {"1": PRESENT, "1.0": PRESENT, "0": ABSENT, "0.0": ABSENT}
BYTES_AT_ONCE = 32_000_000
"""The official training file has 60 million lines; only those of images at hand are kept."""


def read(path: str | Path) -> Loaded:
    """train/ is train; test/ is test, or validation/ where there is no test/."""
    root = Path(path)
    names = _class_names(_only_file(root, "*class-descriptions*.csv"))
    test_part, notes = _test_part(root)
    files = {TRAIN: _image_files(root / "train"), TEST: _image_files(root / test_part)}
    labels = pd.concat(
        _verified(root, part, files[split], names) for split, part in ((TRAIN, "train"), (TEST, test_part))
    )
    images = [file for split in files for file in files[split]]
    _check_ids(root, images)
    categories = {label: name for label, name in names.items() if label in set(labels["LabelName"])}
    if not categories:
        raise UserError(f"{root}: no image has a human-verified label of a category that is described")
    table = LabelTable(
        tuple(file.relative_to(root).as_posix() for file in images),
        tuple(categories.values()),
        _values(labels, images, list(categories)),
        tuple(split for split in files for _ in files[split]),
    )
    return Loaded(provenance.read(table, root / "labels", strict=False), root, notes)


def write(table: LabelTable, folder: Path) -> None:
    """Labels only. The images are train/ID.jpg and test/ID.jpg (or validation/ID.jpg), read in rising order."""
    part = "validation" if any(image.startswith("validation/") for image in table.images) else "test"
    _check_writable(table, part)
    ids = [f"/fewtags/{number}" for number in range(len(table.categories))]
    for split, name in ((TRAIN, "train"), (TEST, part)):
        labels = _label_rows(table.split(split), ids)
        write_text(folder / f"{name}-annotations-human-imagelabels.csv", _csv_text(labels))
    names = [("LabelName", "DisplayName"), *zip(ids, table.categories, strict=True)]
    write_text(folder / "class-descriptions.csv", _csv_text(names))
    provenance.write(table, folder / "labels")


def _check_writable(table: LabelTable, part: str) -> None:
    endings = r"\.(?i:jpg|jpeg|png)"
    require_images_like(table, "Open Images", {TRAIN: f"train/NAME{endings}", TEST: f"{part}/NAME{endings}"})
    require_names(table, "Open Images")
    problems = Problems("cannot be written as Open Images")
    require_once([Path(image).stem for image in table.images], "image id", problems)
    for column, name in enumerate(table.categories):
        if not table.known[:, column].any():
            problems.add(f"no label of category {name!r} is known; leave it out, or write a folder")
    problems.raise_if_any()


def _label_rows(table: LabelTable, ids: Sequence[str]) -> list[tuple[str, ...]]:
    """A line for each known label, below the header."""
    rows: list[tuple[str, ...]] = [("ImageID", "Source", "LabelName", "Confidence")]
    for row, column in np.argwhere(table.known):
        confidence = "1" if table.values[row, column] == PRESENT else "0"
        rows.append((Path(table.images[row]).stem, "verification", ids[column], confidence))
    return rows


def _csv_text(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _test_part(root: Path) -> tuple[str, tuple[str, ...]]:
    if not (root / "test").is_dir():
        return "validation", ("no test/ folder: the validation images are the test images",)
    if (root / "validation").is_dir():
        return "test", ("validation/ is not used: test/ is there",)
    return "test", ()


def _only_file(root: Path, pattern: str) -> Path:
    found = sorted({*root.glob(pattern), *root.glob(f"annotations/{pattern}")})
    if len(found) != 1:
        what = "there is no" if not found else "there are several"
        listed = "".join(f" {file.name}" for file in found)
        raise UserError(f"{root}: {what} {pattern} (one is needed, here or in annotations/){listed}")
    return found[0]


def _image_files(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.glob("*") if file.suffix.lower() in SUFFIXES and not file.is_dir())
    if not files:
        raise UserError(f"{folder}: there are no images")
    return files


def _check_ids(root: Path, images: Sequence[Path]) -> None:
    """A label names an image by its id alone."""
    problems = Problems(str(root))
    require_once([image.stem for image in images], "image id", problems)
    problems.raise_if_any()


def _class_names(file: Path) -> dict[str, str]:
    """Label id (/m/...) → a name that no other category has. Newer files have a header, older ones none."""
    problems = Problems(str(file))
    names: dict[str, str] = {}
    for line, row in _rows(file):
        if len(row) < 2 or not row[1].strip():
            problems.add(f"line {line}: not `label id,name`")
        elif row[0] in names:
            problems.add(f"line {line}: the label id {row[0]!r} is there already")
        elif row[0] != "LabelName":
            names[row[0]] = row[1].strip()
    problems.raise_if_any()
    repeated = Counter(names.values())
    return {label: name if repeated[name] == 1 else f"{name} ({label})" for label, name in names.items()}


def _rows(file: Path) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(read_text(file), newline=""), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as problem:
        raise UserError(f"{file}: line {reader.line_num}: not readable as CSV ({problem})") from problem


def _verified(root: Path, part: str, files: list[Path], names: Mapping[str, str]) -> pd.DataFrame:
    """ImageID, LabelName, value of each verified label of an image and a category that count."""
    file = _only_file(root, f"*{part}-annotations-human-imagelabels*.csv")
    labels = _read_labels(file, {image.stem for image in files}, set(names))
    labels["value"] = labels["Confidence"].map(VERIFIED)
    _check_verified(file, labels)
    return labels


def _read_labels(file: Path, images: set[str], categories: set[str]) -> pd.DataFrame:
    kept = [
        chunk[chunk["ImageID"].isin(images) & chunk["LabelName"].isin(categories)] for chunk in label_chunks(file)
    ]
    return pd.concat([pd.DataFrame({name: pd.Series(dtype=str) for name in COLUMNS}), *kept])


def label_chunks(file: Path) -> Iterator[pd.DataFrame]:
    """The columns that count, some lines at a time, indexed by their place below the header.

    Read by pyarrow: pandas would take a line with a cell too many for one with an index, and shift all others.
    """
    strings = {name: pa.string() for name in COLUMNS}
    convert = csv_reader.ConvertOptions(include_columns=COLUMNS, column_types=strings, strings_can_be_null=False)
    read = csv_reader.ReadOptions(block_size=BYTES_AT_ONCE)
    done = 0
    try:
        with csv_reader.open_csv(file, read_options=read, convert_options=convert) as batches:
            for batch in batches:
                chunk = batch.to_pandas()
                yield chunk.set_axis(range(done, done + len(chunk)))
                done += len(chunk)
    except (pa.ArrowException, OSError) as problem:  # a missing column, another encoding, ragged lines
        wanted = ", ".join(COLUMNS)
        reason = first_line(problem)
        raise UserError(f"{file}: not a UTF-8 CSV file with the columns {wanted} ({reason})") from problem


def _check_verified(file: Path, labels: pd.DataFrame) -> None:
    """A machine's label has a fraction for confidence; a person says 1 or 0, and says it once."""
    problems = Problems(str(file))
    for index in labels.index[labels["value"].isna()]:
        shown = labels.at[index, "Confidence"]
        problems.add(f"line {index + 2}, column 'Confidence': {shown!r} is not 1 or 0")
    said = labels[[*KEY, "value"]].drop_duplicates()
    for index in said.index[said.duplicated(KEY)]:
        problems.add(f"line {index + 2}: contradicts an earlier line on the same image and label")
    problems.raise_if_any()


def _values(labels: pd.DataFrame, images: list[Path], categories: list[str]) -> np.ndarray:
    """(n, C) int8; unknown where there is no line."""
    rows = pd.Index([file.stem for file in images]).get_indexer(pd.Index(labels["ImageID"]))
    columns = pd.Index(categories).get_indexer(pd.Index(labels["LabelName"]))
    values = np.full((len(images), len(categories)), UNKNOWN, dtype=np.int8)
    values[rows, columns] = labels["value"].to_numpy(dtype=np.int8)
    return values
