"""Open Images: human-verified image-level labels (ImageID, Source, LabelName, Confidence 1 or 0).

What nobody verified is unknown. The folder holds the label files of each part under their official names
(`*train*-annotations-human-imagelabels*.csv`, so too for validation and test), one `*class-descriptions*.csv`
that says which categories count and what they are called, and the images in train/, validation/ and test/. Few people
have all nine million images: those that are in the folders count.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from fewtags.errors import Problems, UserError
from fewtags.labels.formats.loaded import Loaded, read_bytes, read_text
from fewtags.labels.split import TEST, TRAIN
from fewtags.labels.table import ABSENT, PRESENT, UNKNOWN, LabelTable

COLUMNS = ("ImageID", "LabelName", "Confidence")
SUFFIXES = (".jpg", ".jpeg", ".png")
VERIFIED = {"1": PRESENT, "1.0": PRESENT, "0": ABSENT, "0.0": ABSENT}


def read(path: str | Path) -> Loaded:
    """train/ is train; test/ is test, or validation/ where there is no test/."""
    root = Path(path)
    names = _class_names(_only_file(root, "*class-descriptions*.csv"))
    test_part, notes = _test_part(root)
    parts = [_read_part(root, "train", TRAIN, names), _read_part(root, test_part, TEST, names)]
    table = LabelTable(
        parts[0].images + parts[1].images,
        parts[0].categories,
        np.concatenate([part.values for part in parts]),
        parts[0].splits + parts[1].splits,
    )
    return Loaded(_occurring(table), root, notes)


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


def _class_names(file: Path) -> dict[str, str]:
    """Label id (/m/...) → a name that no other category has. Newer files have a header, older ones none."""
    rows = [row for row in csv.reader(io.StringIO(read_text(file))) if row]
    problems = Problems(str(file))
    names: dict[str, str] = {}
    for line, row in enumerate(rows, start=1):
        if len(row) < 2:
            problems.add(f"line {line}: not `label id,name`")
        elif row[0] != "LabelName":
            names[row[0]] = row[1].strip()
    problems.raise_if_any()
    repeated = pd.Series(list(names.values())).value_counts()
    return {label: name if repeated[name] == 1 else f"{name} ({label})" for label, name in names.items()}


def _read_part(root: Path, part: str, split: str, names: Mapping[str, str]) -> LabelTable:
    """All images of one folder; those without a verified label are unknown throughout."""
    files = sorted(file for file in (root / part).glob("*") if file.suffix.lower() in SUFFIXES)
    if not files:
        raise UserError(f"{root / part}: there are no images")
    rows = {file.stem: row for row, file in enumerate(files)}
    columns = {label: column for column, label in enumerate(names)}
    labels = _verified(_only_file(root, f"*{part}-annotations-human-imagelabels*.csv"), rows, columns)
    values = np.full((len(files), len(names)), UNKNOWN, dtype=np.int8)
    values[labels["row"].to_numpy(), labels["column"].to_numpy()] = labels["value"].to_numpy()
    images = tuple(f"{part}/{file.name}" for file in files)
    return LabelTable(images, tuple(names.values()), values, (split,) * len(images))


def _verified(file: Path, rows: Mapping[str, int], columns: Mapping[str, int]) -> pd.DataFrame:
    """row, column, value of each verified label of an image and a category that count."""
    labels = _read_labels(file)
    labels = labels[labels["ImageID"].isin(list(rows)) & labels["LabelName"].isin(list(columns))]
    values = labels["Confidence"].map(VERIFIED)
    _check_verified(file, labels, values)
    placed = pd.DataFrame(
        {"row": labels["ImageID"].map(rows), "column": labels["LabelName"].map(columns), "value": values}
    )
    return placed.astype(int)


def _read_labels(file: Path) -> pd.DataFrame:
    try:
        labels = pd.read_csv(
            io.BytesIO(read_bytes(file)), dtype=str, encoding="utf-8-sig", keep_default_na=False
        )
    except (ValueError, UnicodeDecodeError) as problem:
        raise UserError(f"{file}: not readable as CSV ({problem})") from problem
    if missing := [name for name in COLUMNS if name not in labels]:
        raise UserError(f"{file}: line 1: no column {', '.join(missing)}")
    return labels


def _check_verified(file: Path, labels: pd.DataFrame, values: pd.Series) -> None:
    """A machine's label has a fraction for confidence; a person says 1 or 0, and says it once."""
    problems = Problems(str(file))
    for index in labels.index[values.isna()]:
        problems.add(
            f"line {index + 2}, column 'Confidence': {labels.at[index, 'Confidence']!r} is not 1 or 0"
        )
    keys = labels[["ImageID", "LabelName"]].assign(value=values).drop_duplicates()
    for index in keys.index[keys.duplicated(["ImageID", "LabelName"])]:
        problems.add(f"line {index + 2}: contradicts an earlier line on the same image and label")
    problems.raise_if_any()


def _occurring(table: LabelTable) -> LabelTable:
    """Without the categories that nobody verified in any of the images: most of 20,000, with a small download."""
    known = np.flatnonzero(table.known.any(axis=0))
    if not len(known):
        raise UserError("none of the images has a human-verified label of a category that is described")
    return LabelTable(
        table.images,
        tuple(table.categories[column] for column in known),
        table.values[:, known],
        table.splits,
    )
