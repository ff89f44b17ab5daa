from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import fewtags
from fewtags.errors import UserError
from fewtags.serve.images import prepared
from fewtags.serve.limits import Limits
from fewtags.serve.models import OnnxModel, TorchModel, open_model


def test_run_folder_and_file_give_what_predict_gives(trained: Path, exported: Path, colours: Path):
    files = sorted((colours / "images").iterdir())[:6]
    images = np.stack([prepared(file.read_bytes(), 32, Limits()) for file in files])
    expected = fewtags.load(trained).probabilities(files)
    for model in (open_model(trained, threads=1), open_model(exported, threads=1)):
        assert np.abs(model.probabilities(images) - expected).max() < 1e-6
        one_by_one = np.concatenate([model.probabilities(images[[row]]) for row in range(len(images))])
        assert np.abs(one_by_one - expected).max() < 1e-6
    assert expected.std(0).max() > 5e-4  # what is compared does differ between images


def test_both_know_what_they_are(trained: Path, exported: Path):
    run, file = TorchModel(trained, threads=1), OnnxModel(exported, threads=1)
    assert run.card == file.card
    assert run.card.categories == fewtags.load(trained).categories
    assert run.runtime.startswith("torch ")
    assert file.runtime.startswith("onnxruntime ")


def test_what_cannot_be_served_is_named(tmp_path: Path, exported: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UserError, match="gone: no such run folder or ONNX file"):
        open_model(tmp_path / "gone")
    (tmp_path / "text.onnx").write_text("nothing")
    with pytest.raises(UserError, match=r"text\.onnx: not a run folder, and no ONNX file that can be read"):
        open_model(tmp_path / "text.onnx")
    with pytest.raises(UserError, match=r"recipe\.yaml: missing; is .* a run folder"):
        open_model(tmp_path)
    model = onnx.load(exported)
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "foreign.onnx")
    with pytest.raises(UserError, match=r"foreign\.onnx: its metadata do not say .* export it with"):
        open_model(tmp_path / "foreign.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match=r"needs onnxruntime: pip install 'fewtags\[serve\]'"):
        open_model(exported)
