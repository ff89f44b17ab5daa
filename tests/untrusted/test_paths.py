"""Paths and links that lead out of the folder, and programs that would be started."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import fewtags
from fewtags.completion.complete import complete
from fewtags.errors import UserError
from fewtags.report import run_report
from fewtags.serve.models import open_model


@pytest.mark.parametrize(
    "name", ["report.html", "examples", "metrics.json", "checkpoints", "completion/heldout.parquet"]
)
def test_links_out_of_the_folder_are_neither_read_nor_written(run: Path, name: str, tmp_path: Path, colours: Path):
    secret = tmp_path / "secret"
    target = run / name
    if target.is_dir():
        secret.mkdir()
        shutil.rmtree(target)
    else:
        secret.write_text("mine")
        target.unlink(missing_ok=True)
    target.symlink_to(secret)
    for use in (fewtags.load, run_report, lambda path: complete(path, str(colours), tmp_path / "out")):
        with pytest.raises(UserError, match="outside of the run folder"):
            use(run)
    assert not secret.is_file() or secret.read_text() == "mine"
    assert not secret.is_dir() or not list(secret.iterdir())


def test_links_within_the_folder_are_fine(run: Path):
    shutil.move(run / "model.safetensors", run / "weights.safetensors")
    (run / "model.safetensors").symlink_to("weights.safetensors")
    (run / "loop").symlink_to("loop")
    fewtags.load(run)


@pytest.mark.parametrize("file", ["../../secret.png", "/etc/passwd", "..", "sub/../../../secret.png", 5, None])
def test_a_report_shows_no_other_files(run: Path, file: Any, tmp_path: Path):
    Image.new("RGB", (9, 9), "red").save(tmp_path / "secret.png")
    content = {"images": [{"file": file, "name": "x"}]}
    (run / "examples").mkdir(exist_ok=True)
    (run / "examples" / "examples.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"not the name of an example image|this is a folder"):
        run_report(run)


def test_a_report_escapes_what_names_say(run: Path):
    evil = "<script>alert(1)</script>"
    Image.new("RGB", (9, 9), "red").save(run / "0.png")
    (run / "examples").mkdir(exist_ok=True)
    Image.new("RGB", (9, 9), "red").save(run / "examples" / "0.png")
    known = {
        "file": "0.png",
        "name": evil,
        "known_present": [evil],
        "predicted": [{"category": evil, "probability": 1}],
    }
    (run / "examples" / "examples.json").write_text(json.dumps({"images": [known]}))
    assert evil not in run_report(run).read_text()


@pytest.mark.skipif(shutil.which("gs") is None and os.name != "posix", reason="about programs")
def test_postscript_called_jpg_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from fewtags.images.loading import open_image

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr("subprocess.Popen", refuse)
    (tmp_path / "evil.jpg").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n(x) print\n%%EOF\n"
    )
    with pytest.raises(UserError, match=r"evil\.jpg: not an image"):
        open_image(tmp_path / "evil.jpg")


def test_an_exported_file_reads_no_other_file(exported: Path, tmp_path: Path):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(exported)
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(4096))
    (tmp_path / "model").mkdir()
    tensor = max(model.graph.initializer, key=lambda made: len(made.raw_data))
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret.bin")
    tensor.ClearField("raw_data")
    (tmp_path / "model" / "evil.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match=r"evil\.onnx"):
        open_model(tmp_path / "model" / "evil.onnx")
