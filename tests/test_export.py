"""An exported file gives what `predict` gives, says what it is, and is not written when it does not."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from PIL import Image
from torch import nn

import fewtags
from fewtags import export
from fewtags.errors import UserError
from fewtags.export import TOLERANCE, export_tagger, largest_difference, random_images
from fewtags.methods import METHODS, Method, Setting
from fewtags.model_card import ModelCard
from fewtags.nn.backbone_classes import BackboneClasses
from fewtags.nn.backbones import Backbone
from fewtags.predict import Tagger
from fewtags.recipe import Recipe
from fewtags.training.folder import Labels, RunFolder
from tests.command import fewtags as command
from tests.conftest import COLOURS, TINY

PAGE = Path(__file__).parents[1] / "docs" / "production.md"
CATEGORIES = ("boat", "car", "dog", "tree", "zebra")


class SmallNetwork(nn.Sequential):
    """A backbone that exports in a moment."""

    num_features = 8

    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3, stride=4), nn.BatchNorm2d(8), nn.ReLU())

    def forward_features(self, images):
        return self(images)


def make_tagger(
    name: str, network: nn.Module | None = None, classes: BackboneClasses | None = None, **settings
) -> Tagger:
    """A tagger with random weights, large enough that images differ in their probabilities."""
    recipe = Recipe(**(TINY | METHODS[name].settings | {"method": name, "graph_steps": 2} | settings))
    torch.manual_seed(1)
    backbone = Backbone(network or SmallNetwork(), "small", (0.4, 0.5, 0.6), (0.2, 0.25, 0.3))
    method = METHODS[name](Setting(recipe, CATEGORIES, 8, torch.zeros(1, len(CATEGORIES)), classes=classes))
    for part in (backbone, method):
        for key, tensor in part.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(random_weights(key, tensor.shape))
    labels = Labels(
        categories=list(CATEGORIES),
        decision_thresholds=[0.1, 0.3, 0.5, 0.7, 0.9],
        decision_thresholds_from="nothing",
        data="none",
        channels=8,
    )
    return Tagger(recipe, labels, backbone.eval(), method.eval(), torch.device("cpu"))


def random_weights(key: str, shape: torch.Size) -> torch.Tensor:
    if key.endswith("running_var"):
        return 0.5 + torch.rand(shape)
    if key.endswith(("adjacency", "edges")):
        return torch.rand(shape) / shape[0]
    fan_in = max(1, math.prod(shape[1:]))
    return torch.randn(shape) / fan_in**0.5


def network_of(method: Method) -> tuple[Callable, type | None, str]:
    """What decides the graph that a method exports to: its code from the map to the logits."""
    tagger = getattr(method, "tagger", None)
    return type(method).forward, None if tagger is None else type(tagger), method.recipe.category_features


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Network → (file, the tagger it was exported from): exporting takes seconds, and methods share networks."""
    return {"folder": tmp_path_factory.mktemp("exports")}


def exported_network(tagger: Tagger, exports: dict) -> tuple[Path, Tagger]:
    key = network_of(tagger.method)
    if key not in exports:
        file = exports["folder"] / f"{len(exports)}.onnx"
        assert export_tagger(tagger, file).difference <= TOLERANCE
        exports[key] = file, tagger
    return exports[key]


CASES = [(name, "sd") for name in METHODS] + [
    (name, "sa") for name in METHODS if hasattr(make_tagger(name).method, "tagger")
]


def test_discriminants_and_the_classes_they_read_are_exported_too(tmp_path: Path):
    classes = BackboneClasses(torch.randn(6, 8), torch.randn(6))
    tagger = make_tagger("hst", classes=classes, freeze_backbone=True)
    assert len(tagger.method.discriminants.description.class_bias) == 6
    assert export_tagger(tagger, tmp_path / "hst.onnx").difference <= TOLERANCE


@pytest.mark.parametrize(("name", "features"), CASES)
def test_every_method_gives_what_predict_gives(name: str, features: str, exports: dict):
    tagger = make_tagger(name, category_features=features)
    file, source = exported_network(tagger, exports)
    shared = {key: value for key, value in source.method.state_dict().items() if key in tagger.method.state_dict()}
    tagger.method.load_state_dict(shared, strict=False)  # the same network, with the weights that are in the file
    tagger.backbone = source.backbone
    session = onnxruntime.InferenceSession(str(file))
    for count in (1, 3, 8):
        images = random_images(32, count, seed=10 + count)
        pixels = np.stack([np.asarray(image.resize((32, 32), Image.Resampling.BILINEAR)) for image in images])
        inputs = {"images": pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255}
        probabilities, logits = session.run(["probabilities", "logits"], inputs)
        expected = tagger.probabilities(images)
        assert probabilities.shape == (count, len(CATEGORIES))
        assert np.abs(probabilities - expected).max() <= TOLERANCE
        assert np.abs(1 / (1 + np.exp(-logits)) - expected).max() <= TOLERANCE
    assert expected.std(0).max() > 0.01  # images do differ, so that agreeing means something


def test_weights_that_changed_after_the_export_are_noticed(exports: dict):
    tagger = make_tagger("plain")
    file, _ = exported_network(tagger, exports)
    with torch.no_grad():
        next(tagger.method.parameters()).add_(0.01)
    assert largest_difference(tagger, file) > TOLERANCE


def test_the_command_writes_one_file_and_prints_the_difference(trained: Path, tmp_path: Path):
    file = tmp_path / "new" / "tagger.onnx"
    answer = command("export", trained, "--onnx", file)
    assert answer.returncode == 0, answer.stderr
    (difference,) = re.findall(r"12 random images .* by at most ([\d.e-]+)", answer.stdout)
    assert float(difference) <= TOLERANCE
    assert answer.stderr == ""
    assert [path.name for path in file.parent.iterdir()] == ["tagger.onnx"]


def test_metadata_say_what_goes_in_and_comes_out(trained: Path, exported: Path):
    session = onnxruntime.InferenceSession(str(exported))
    about = session.get_modelmeta().custom_metadata_map
    labels, recipe = RunFolder(trained).labels(), RunFolder(trained).recipe()
    assert json.loads(about["categories"]) == list(COLOURS)
    assert json.loads(about["decision_thresholds"]) == labels.decision_thresholds
    assert int(about["image_size"]) == 32
    assert "bilinear" in about["resize"]
    assert "0 to 1" in about["input"]
    assert (about["method"], about["backbone"]) == ("hst", "test_resnet")
    assert (about["recipe_hash"], about["fewtags_version"]) == (recipe.hash(), fewtags.__version__)
    ((name, shape, kind),) = [(x.name, x.shape, x.type) for x in session.get_inputs()]
    assert (name, shape, kind) == ("images", ["batch", 3, 32, 32], "tensor(float)")
    assert [(x.name, x.shape) for x in session.get_outputs()] == [
        ("probabilities", ["batch", 4]),
        ("logits", ["batch", 4]),
    ]
    model = onnx.load(exported)
    onnx.checker.check_model(model, full_check=True)
    assert [entry.version for entry in model.opset_import if entry.domain == ""] == [export.OPSET]


def test_what_only_training_needs_is_left_out(exported: Path):
    names = [tensor.name for tensor in onnx.load(exported).graph.initializer]
    assert any("classifier" in name for name in names)
    assert [name for name in names if "intra" in name or "cross" in name] == []


def test_a_graph_that_differs_is_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def forgets_to_normalise(self, images):
        logits = self.method(self.backbone(images))["logits"]
        return torch.sigmoid(logits), logits

    monkeypatch.setattr(export.WholeTagger, "forward", forgets_to_normalise)
    file = tmp_path / "tagger.onnx"
    file.write_bytes(b"the old one")
    with pytest.raises(UserError, match=r"tagger\.onnx was not written: .* differ .* Please report the backbone"):
        export_tagger(make_tagger("plain"), file)
    assert file.read_bytes() == b"the old one"
    assert list(tmp_path.iterdir()) == [file]


class Untraceable(SmallNetwork):
    def forward_features(self, images):
        return self(images) if float(images.sum()) > 0 else self(images) * 2


def test_a_backbone_that_cannot_be_traced_is_named(tmp_path: Path):
    with pytest.raises(UserError, match="with method plain cannot be exported to ONNX"):
        export_tagger(make_tagger("plain", Untraceable()), tmp_path / "tagger.onnx")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_work_is_said_before_any_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    tagger = make_tagger("plain")
    with pytest.raises(UserError, match=r"name a file that ends in \.onnx"):
        export_tagger(tagger, tmp_path / "tagger.csv")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(UserError, match="this is a folder"):
        export_tagger(tagger, tmp_path / "folder.onnx")
    monkeypatch.setattr(export, "LARGEST_FILE", 100)
    with pytest.raises(UserError, match="choose a smaller backbone"):
        export_tagger(tagger, tmp_path / "tagger.onnx")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(UserError, match=r"needs onnxscript: pip install 'fewtags\[onnx\]'"):
        export_tagger(tagger, tmp_path / "tagger.onnx")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"categories": None}, "no 'categories'"),
        ({"categories": "red, green"}, "Expecting value"),
        ({"categories": '["red"]'}, "differ in number"),
        ({"image_size": "large"}, "image_size"),
    ],
)
def test_metadata_that_are_not_ours_are_named(change: dict, message: str):
    card = ModelCard(
        categories=["red", "grün"],
        decision_thresholds=[0.25, 0.5],
        image_size=32,
        method="plain",
        backbone="lite0",
        recipe_hash="abc",
        fewtags_version="1",
    )
    metadata = card.to_metadata()
    assert ModelCard.from_metadata(metadata, "x.onnx") == card
    broken = {key: value for key, value in (metadata | change).items() if value is not None}
    with pytest.raises(UserError, match=rf"x\.onnx: .*{message}.*export it with"):
        ModelCard.from_metadata(broken, "x.onnx")


def test_the_snippet_of_the_docs_needs_neither_torch_nor_fewtags(
    trained: Path, exported: Path, colours: Path, tmp_path: Path
):
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "tagger.onnx").symlink_to(exported)
    Image.open(colours / "images" / "004.png").resize((90, 60)).save(tmp_path / "photo.jpg", quality=95)
    blocked = "import sys; sys.modules['torch'] = sys.modules['fewtags'] = None\n"
    answer = subprocess.run(
        [sys.executable, "-c", blocked + snippet], capture_output=True, text=True, cwd=tmp_path
    )
    assert answer.returncode == 0, answer.stderr
    found = dict(re.findall(r"\('(\w+)', ([\d.]+)\)", answer.stdout))
    (expected,) = fewtags.load(trained).predict([tmp_path / "photo.jpg"])
    assert expected
    assert {tag.category: pytest.approx(tag.probability, abs=2e-4) for tag in expected} == {
        name: float(probability) for name, probability in found.items()
    }
