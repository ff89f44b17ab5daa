"""`--on-bad-image error|skip` of train, evaluate, predict, complete and convert: what is left out is told, and the
rest stays aligned. Bad images come first, in the middle, last, and as a whole batch."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import fewtags
from fewtags.cli import main
from fewtags.completion.complete import Wanted, complete
from fewtags.convert import convert
from fewtags.data import open_data
from fewtags.errors import BadImageError, UserError
from fewtags.evaluation import evaluate
from fewtags.predict import load, predict_files
from fewtags.training.folder import RunFolder
from tests.conftest import TINY, write_colours

SHORT = TINY | {"epochs": 1, "batch_size": 8, "method": "plain"}
BAD = {
    "first": [0],
    "middle": [21],
    "last": [47],
    "a whole batch": list(range(16, 24)),
    "several": [0, 5, 6, 30, 63],
}
"""Rows 0 to 47 are for training, 48 to 63 for testing."""


def spoil(data: Path, rows: list[int]) -> list[str]:
    """Damage the images of these rows; returns their names."""
    names = [f"images/{row:03d}.png" for row in rows]
    for name in names:
        (data / name).write_bytes((data / name).read_bytes()[:60])
    return names


def without(data: Path, folder: Path, names: list[str]) -> Path:
    """The same data set without these rows, in the old-fashioned way."""
    shutil.copytree(data, folder)
    lines = (folder / "labels.csv").read_text().splitlines(keepends=True)
    (folder / "labels.csv").write_text("".join(line for line in lines if line.split(",")[0] not in names))
    return folder


def skipped_names(file: Path) -> list[str]:
    with file.open(newline="", encoding="utf-8") as lines:
        return [row["image"] for row in csv.DictReader(lines)]


@pytest.mark.parametrize("where", BAD)
def test_training_equals_training_without_the_rows(where: str, tmp_path: Path):
    data = write_colours(tmp_path / "data", unknown=0.3)
    names = spoil(data, BAD[where])
    skipping = fewtags.train(data, out=tmp_path / "skip", on_bad_image="skip", **SHORT)
    clean = fewtags.train(without(data, tmp_path / "clean", names), out=tmp_path / "run", **SHORT)
    assert skipped_names(skipping / "skipped_images.csv") == names
    assert not (clean / "skipped_images.csv").exists()
    weights, expected = RunFolder(skipping).tensors("method"), RunFolder(clean).tensors("method")
    assert all(np.array_equal(weights[name], expected[name]) for name in expected)
    assert RunFolder(skipping).metrics()["mAP"] == RunFolder(clean).metrics()["mAP"]


@pytest.mark.parametrize("frozen", [True, False])
def test_training_stops_at_a_bad_image_and_names_it(frozen: bool, tmp_path: Path):
    data = write_colours(tmp_path / "data")
    spoil(data, [21])
    with pytest.raises(BadImageError, match=r"images/021\.png: the image cannot be read") as problem:
        fewtags.train(data, out=tmp_path / "run", freeze_backbone=frozen, workers=1, **SHORT)
    assert "Traceback" not in str(problem.value)
    assert "Caught" not in str(problem.value)


@pytest.fixture(scope="module")
def run_and_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str]]:
    """A run on whole data, and a copy of the data with bad images."""
    folder = tmp_path_factory.mktemp("bad-images")
    whole = write_colours(folder / "whole", unknown=0.4)
    sure = {"epochs": 20, "holdout": 0.0, "method": "plain", "shortcut_lr": 0.5}
    run = fewtags.train(whole, out=folder / "run", **(TINY | sure))
    spoiled = write_colours(folder / "spoiled", unknown=0.4)
    return run, spoiled, spoil(spoiled, [0, 21, 47, 48, 55, 63])


def test_evaluating(run_and_data: tuple[Path, Path, list[str]], tmp_path: Path):
    run, data, names = run_and_data
    with pytest.raises(BadImageError, match=r"images/048\.png"):
        evaluate(run, str(data))
    console = Console(record=True, quiet=False, file=(tmp_path / "said").open("w"))
    found = evaluate(run, str(data), on_bad_image="skip", console=console)
    expected = evaluate(run, str(without(data, tmp_path / "clean", names)))
    assert found["skipped_images"] == names
    assert found["images"] == 13
    assert found["mAP"] == expected["mAP"]
    assert "6 images cannot be read and are left out" in console.export_text()


def test_predicting(run_and_data: tuple[Path, Path, list[str]], tmp_path: Path):
    run, data, names = run_and_data
    tagger, files = load(run), sorted((data / "images").iterdir())
    how = {"top": None, "threshold": 0.0, "console": Console(quiet=True)}
    with pytest.raises(BadImageError, match=r"000\.png"):
        predict_files(tagger, files, **how)
    found = predict_files(tagger, files, on_bad_image="skip", **how)
    assert [f"images/{Path(entry.image).name}" for entry in found.skipped] == names
    assert len(found.files) == len(found.tags) == 58
    for file, tags in zip(found.files, found.tags, strict=True):
        (alone,) = tagger.predict([file], threshold=0.0)
        assert [tag.category for tag in tags] == [tag.category for tag in alone]
        assert [t.probability for t in tags] == pytest.approx([t.probability for t in alone], abs=1e-6)
    with pytest.raises(UserError, match="none of the 1 images can be read"):
        predict_files(tagger, files[:1], on_bad_image="skip", **how)


def test_completing_leaves_the_rows_of_bad_images_as_they_are(
    run_and_data: tuple[Path, Path, list[str]], tmp_path: Path
):
    run, data, names = run_and_data
    with pytest.raises(BadImageError, match=r"images/000\.png"):
        complete(run, str(data), tmp_path / "error")
    report = complete(run, str(data), tmp_path / "out", Wanted(on_bad_image="skip"))
    assert report["skipped_images"] == names == skipped_names(tmp_path / "out" / "skipped_images.csv")
    before, after = ((folder / "labels.csv").read_text().splitlines() for folder in (data, tmp_path / "out"))
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        if old.split(",")[0] in names:
            assert new == old
        known = zip(old.split(","), new.split(","), strict=True)
        assert all(one == two for one, two in known if one), new
    assert after != before  # something was filled
    clean = complete(run, str(without(data, tmp_path / "clean", names)), tmp_path / "all")
    kept = [line for line in after if line.split(",")[0] not in names]
    assert kept == (tmp_path / "all" / "labels.csv").read_text().splitlines()
    assert clean["skipped_images"] == []


def test_a_run_that_skipped_is_completed_likewise(tmp_path: Path):
    data = write_colours(tmp_path / "data", unknown=0.3)
    names = spoil(data, [3, 50])
    run = fewtags.train(data, out=tmp_path / "run", on_bad_image="skip", **(TINY | {"epochs": 1}))
    assert complete(run, str(data), tmp_path / "out")["skipped_images"] == names


@pytest.mark.parametrize("to", ["folder", "coco", "sparse"])
def test_converting(to: str, tmp_path: Path):
    data = write_colours(tmp_path / "data", unknown=0.3)
    names = spoil(data, BAD["several"])
    told: list[str] = []
    dest = tmp_path / "dest"
    convert(str(data), dest, to=to, size=32, on_bad_image="skip", progress=False, say=told.append)
    assert skipped_names(dest / "skipped_images.csv") == names
    assert any("5 images cannot be read" in sentence for sentence in told)
    read = open_data({"folder": "", "coco": "coco:", "sparse": "sparse:"}[to] + str(dest)).table
    left = open_data(str(without(data, tmp_path / "left", names))).table
    assert [Path(image).stem for image in read.images] == [Path(image).stem for image in left.images]
    assert (np.asarray(read.values[:]) == left.values).all()


def test_converting_stops_at_a_bad_image_and_names_it(tmp_path: Path):
    data = write_colours(tmp_path / "data")
    spoil(data, [5])
    with pytest.raises(BadImageError, match=r"005\.png"):
        convert(str(data), tmp_path / "dest", size=32, progress=False)
    assert not (tmp_path / "dest").exists()


def test_labels_alone_cannot_tell_bad_images(tmp_path: Path):
    data = write_colours(tmp_path / "data")
    with pytest.raises(UserError, match="--labels-only looks at no image"):
        convert(str(data), tmp_path / "dest", to="sparse", labels_only=True, on_bad_image="skip")


def test_training_on_sparse_labels_skips_too(tmp_path: Path):
    data = write_colours(tmp_path / "data", unknown=0.3)
    names = spoil(data, BAD["several"])
    convert(str(data), tmp_path / "sparse", to="sparse", labels_only=True)
    run = fewtags.train(f"sparse:{tmp_path / 'sparse'}", out=tmp_path / "run", on_bad_image="skip", **SHORT)
    assert skipped_names(run / "skipped_images.csv") == names
    plain = fewtags.train(str(without(data, tmp_path / "left", names)), out=tmp_path / "plain", **SHORT)
    assert (run / "model.safetensors").read_bytes() == (plain / "model.safetensors").read_bytes()


def test_all_bad(tmp_path: Path):
    data = write_colours(tmp_path / "data", train=3, test=1)
    spoil(data, [0, 1, 2, 3])
    with pytest.raises(UserError, match=r"none of its 4 images can be read; .*000\.png"):
        open_data(str(data), on_bad_image="skip")


def test_an_image_that_was_repaired_is_looked_at_again(tmp_path: Path):
    data = write_colours(tmp_path / "data", train=3, test=1)
    good = (data / "images" / "001.png").read_bytes()
    spoil(data, [1])
    assert len(open_data(str(data), on_bad_image="skip").table) == 3
    (data / "images" / "001.png").write_bytes(good)
    assert len(open_data(str(data), on_bad_image="skip").table) == 4


def test_the_command_line(
    run_and_data: tuple[Path, Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run, data, names = run_and_data
    image = str(data / names[0])
    assert command(["predict", str(run), image]) == 2
    told = capsys.readouterr().err
    assert image in told.replace("\n", "")
    assert "--on-bad-image skip" in told
    out = tmp_path / "tags.json"
    assert command(["predict", str(run), str(data), "--on-bad-image", "skip", "--out", str(out)]) == 0
    assert len(skipped_names(tmp_path / "tags.skipped_images.csv")) == 6
    assert {Path(row["image"]).name for row in json.loads(out.read_text())}.isdisjoint(Path(n).name for n in names)
    assert "6 images cannot be read and are left out" in capsys.readouterr().err


def command(arguments: list[str]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["fewtags", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)
