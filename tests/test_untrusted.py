"""A run folder of a stranger: nothing in it is executed, nothing outside of it is read or written, nothing huge is
made. Each attack ends in a UserError, and the trap that it carries stays shut."""

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import load_file, save_file

import fewtags
from fewtags import plain_yaml
from fewtags.completion.complete import complete
from fewtags.errors import UserError
from fewtags.nn import words
from fewtags.nn.backbones import build_backbone
from fewtags.recipe import Recipe
from fewtags.report import run_report
from fewtags.serve.models import open_model
from fewtags.training.run import train
from tests.conftest import TINY

TRAP = "sprung"


class Bomb:
    """Unpickling it leaves a file behind."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (TRAP, "w"))


@pytest.fixture(autouse=True)
def _trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every test runs where the trap would be seen, and fails if it was sprung."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield
    assert not (tmp_path / "here" / TRAP).exists(), "code from a model folder was executed"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_the_trap_works(tmp_path: Path):
    pickle.loads(pickle.dumps(Bomb())).close()
    assert (tmp_path / "here" / TRAP).exists()
    (tmp_path / "here" / TRAP).unlink()


def torch_zip() -> bytes:
    stream = io.BytesIO()
    torch.save({"state": Bomb()}, stream)
    return stream.getvalue()


def numpy_pickle() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([Bomb()], dtype=object), allow_pickle=True)
    return stream.getvalue()


PICKLES: dict[str, Callable[[], bytes]] = {
    "pickle": lambda: pickle.dumps(Bomb()),
    "torch": torch_zip,
    "numpy": numpy_pickle,
}


@pytest.mark.parametrize("kind", PICKLES)
@pytest.mark.parametrize("file", ["model.safetensors", "labels.json", "recipe.yaml"])
def test_pickles_in_place_of_files(run: Path, file: str, kind: str):
    (run / file).write_bytes(PICKLES[kind]())
    for use in (fewtags.load, lambda path: open_model(path)):
        with pytest.raises(UserError, match=file):
            use(run)


@pytest.mark.parametrize("kind", PICKLES)
def test_pickles_in_place_of_what_completing_keeps(run: Path, colours: Path, kind: str, tmp_path: Path):
    for file in ("heldout.parquet", "gallery.parquet", "scale.json"):
        before = (run / "completion" / file).read_bytes()
        (run / "completion" / file).write_bytes(PICKLES[kind]())
        with pytest.raises(UserError, match="completion"):
            complete(run, str(colours), tmp_path / "out")
        (run / "completion" / file).write_bytes(before)


@pytest.mark.parametrize("kind", PICKLES)
def test_pickles_in_place_of_checkpoints(run: Path, colours: Path, kind: str):
    last = sorted((run / "checkpoints").iterdir())[-1]
    last.write_bytes(PICKLES[kind]())
    (run / "metrics.json").unlink()
    with pytest.raises(UserError, match="not a checkpoint of fewtags"):
        train(str(colours), Recipe(), run, resume=True)


def test_checkpoints_as_lightning_writes_them_are_not_even_looked_at(run: Path, colours: Path):
    for old in (run / "checkpoints").iterdir():
        old.unlink()
    for ending in ("ckpt", "pt", "pth"):
        (run / "checkpoints" / f"epoch-0002.{ending}").write_bytes(torch_zip())
    (run / "metrics.json").unlink()
    train(str(colours), Recipe(), run, resume=True)


def test_a_checkpoint_of_another_network_is_refused(run: Path, colours: Path):
    from fewtags.training import checkpoint

    last = sorted((run / "checkpoints").iterdir())[-1]
    content = checkpoint.load(last)
    name = next(iter(content["state_dict"]))
    content["state_dict"][name] = torch.zeros(3, 3, 3)
    checkpoint.save(content, last)
    (run / "metrics.json").unlink()
    with pytest.raises(UserError, match="do not fit"):
        train(str(colours), Recipe(), run, resume=True)
    checkpoint.save({"epoch": 1}, last)
    with pytest.raises(UserError, match="not a checkpoint of fewtags"):
        train(str(colours), Recipe(), run, resume=True)


@pytest.mark.parametrize("kind", PICKLES)
@pytest.mark.parametrize("ending", ["pth", "safetensors", "npz"])
def test_pickles_as_weights_and_words(tmp_path: Path, kind: str, ending: str):
    file = tmp_path / f"file.{ending}"
    file.write_bytes(PICKLES[kind]())
    if ending == "npz":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("names.npy", numpy_pickle())
            archive.writestr("vectors.npy", PICKLES[kind]())
        with pytest.raises(UserError, match=r"file\.npz"):
            words.load_words(str(file), ["dog"])
    else:
        with pytest.raises(UserError, match=f"file.{ending}"):
            build_backbone("test_resnet", weights=str(file))


def test_a_parquet_type_that_carries_a_pickle(run: Path, colours: Path, tmp_path: Path):
    """pyarrow before 14.0.1 unpickled such types when it opened a file."""
    meta = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": pickle.dumps(Bomb())}
    table = pd.read_parquet(run / "completion" / "heldout.parquet")
    arrow = pa.Table.from_pandas(table)
    field = arrow.schema.field("image").with_metadata(meta)
    arrow = arrow.cast(arrow.schema.set(arrow.schema.get_field_index("image"), field))
    pq.write_table(arrow, run / "completion" / "heldout.parquet")
    from fewtags.completion.kept import read_kept

    assert len(read_kept(run).held.image) == len(table)


YAML_ATTACKS = {
    "object": f"method: !!python/object/apply:os.system ['touch {TRAP}']",
    "name": "method: !!python/name:os.system",
    "module": "method: !!python/module:os",
    "new": f"method: !!python/object/new:subprocess.Popen [['touch', '{TRAP}']]",
    "own tag": "method: !Recipe {a: 1}",
    "aliases": "a: &a [x, x]\n"
    + "\n".join(f"{b}: &{b} [*{a}, *{a}]" for a, b in zip("abcdefghi", "bcdefghij", strict=True)),
    "nesting": "method: " + "[" * 1_500,
    "huge": "method: " + "x" * 2_000_000,
    "a list": "- 1\n- 2",
    "number keys": "1: 2\n3: 4",
    "a date that is none": "method: 2020-99-99",
    "bytes": "seed: !!binary AAAA",
    "not text": "\x00\x01",
}


@pytest.mark.parametrize("attack", YAML_ATTACKS)
def test_recipes_are_values(run: Path, attack: str):
    (run / "recipe.yaml").write_text(YAML_ATTACKS[attack])
    with pytest.raises(UserError, match=r"recipe\.yaml") as problem:
        fewtags.load(run)
    assert len(str(problem.value)) < 5000


def test_set_takes_values_only():
    with pytest.raises(UserError, match="--set"):
        Recipe().override([f"method=!!python/object/apply:os.system ['touch {TRAP}']"])


def test_plain_yaml_reads_what_safe_yaml_reads():
    text = Recipe().to_yaml()
    assert plain_yaml.parse(text, "here") == yaml.safe_load(text)


def with_settings(run: Path, **settings: Any) -> None:
    content = yaml.safe_load((run / "recipe.yaml").read_text())
    (run / "recipe.yaml").write_text(yaml.safe_dump(content | settings))


NAMES_OF_CODE = {
    "method": ["os.system", "fewtags.cli:main", "../../evil", "__import__('os')"],
    "backbone": [
        "hf-hub:evil/model",
        "hf_hub:evil/model",
        "local-dir:/tmp/evil",
        "os.system",
        "timm.models:x",
        "https://x/y",
    ],
}


@pytest.mark.parametrize(
    ("field", "name"), [(field, name) for field, names in NAMES_OF_CODE.items() for name in names]
)
def test_a_recipe_cannot_name_code(run: Path, field: str, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("socket.socket.connect", refuse_network)
    with_settings(run, **{field: name})
    with pytest.raises(UserError, match=r"does not have|cannot be built"):
        fewtags.load(run)


def refuse_network(*_: object) -> None:
    raise AssertionError("it went to the network")


def test_a_text_encoder_never_brings_its_own_code(monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, Any]] = []

    class Auto:
        @staticmethod
        def from_pretrained(name: str, **options: Any) -> None:
            asked.append(options)
            if len(asked) == 2:
                raise ValueError("this repository contains custom code")

    fake = type("transformers", (), {"AutoTokenizer": Auto, "AutoModel": Auto})
    monkeypatch.setitem(__import__("sys").modules, "transformers", fake)
    with pytest.raises(UserError, match="custom code"):
        words.load_words("hub:evil/encoder", ["dog"])
    assert asked == [{"trust_remote_code": False}] * 2


TERABYTES = {
    "feature_size": 1_000_000_000,
    "classifier_size": 1_000_000_000,
    "pair_hidden": 1_000_000_000,
    "contrast_queue": 10**15,
    "prototypes": 1_000_000_000,
    "image_size": 10**9,
    "graph_steps": 10**12,
    "word_size": 10**12,
}


@pytest.mark.parametrize("field", TERABYTES)
def test_sizes_that_no_memory_holds(run: Path, field: str):
    with_settings(run, **{field: TERABYTES[field]})
    before = peak()
    with pytest.raises(UserError):
        fewtags.load(run)
    assert peak() - before < 300


@pytest.mark.parametrize("field", ["channels", "word_size"])
def test_labels_with_sizes_that_no_memory_holds(run: Path, field: str):
    content = json.loads((run / "labels.json").read_text())
    (run / "labels.json").write_text(json.dumps(content | {field: 900_000}))
    before = peak()
    with pytest.raises(UserError):
        fewtags.load(run)
    assert peak() - before < 300


def test_categories_without_number(run: Path):
    content = json.loads((run / "labels.json").read_text())
    content["categories"] = [f"c{number}" for number in range(100_000)]
    content["decision_thresholds"] = [0.5] * 100_000
    (run / "labels.json").write_text(json.dumps(content))
    before = peak()
    with pytest.raises(UserError):
        fewtags.load(run)
    assert peak() - before < 300


def peak() -> float:
    """Megabytes of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


LABELS_ATTACKS: dict[str, Any] = {
    "no object": [],
    "a threshold that is none": {"decision_thresholds": [float("nan")] * 4},
    "too few thresholds": {"decision_thresholds": [0.5]},
    "a category twice": {"categories": ["a", "a", "b", "c"]},
    "no category": {"categories": [], "decision_thresholds": []},
    "no name": {"categories": ["", "b", "c", "d"]},
    "numbers": {"categories": [1, 2, 3, 4]},
    "more": {"code": "import os"},
}


@pytest.mark.parametrize("attack", LABELS_ATTACKS)
def test_labels_are_checked(run: Path, attack: str):
    content = json.loads((run / "labels.json").read_text())
    change = LABELS_ATTACKS[attack]
    (run / "labels.json").write_text(json.dumps(change if isinstance(change, list) else content | change))
    with pytest.raises(UserError, match=r"labels\.json"):
        fewtags.load(run)


def header_of(size: int, text: bytes) -> bytes:
    return struct.pack("<Q", size) + text


SAFETENSORS_ATTACKS = {
    "a header of exabytes": header_of(2**60, b"{}"),
    "a header longer than the file": header_of(10_000, b"{}"),
    "a header that is no JSON": header_of(5, b"abcde"),
    "a deep header": header_of(40_000, b"[" * 40_000),
    "a tensor beyond the file": header_of(
        78, b'{"method.a":{"dtype":"F32","shape":[99999999],"data_offsets":[0,399999996]}}  '
    ),
    "a shape without end": header_of(
        96, b'{"method.a":{"dtype":"F32","shape":[4294967296,4294967296,16],"data_offsets":[0,4]}}        '
    ),
    "an unknown type": header_of(70, b'{"method.a":{"dtype":"EVIL","shape":[1],"data_offsets":[0,4]}}        ')
    + b"0000",
    "nothing": b"",
}


@pytest.mark.parametrize("attack", SAFETENSORS_ATTACKS)
def test_safetensors_headers_are_checked(run: Path, attack: str):
    (run / "model.safetensors").write_bytes(SAFETENSORS_ATTACKS[attack])
    before = peak()
    with pytest.raises(UserError, match=r"model\.safetensors"):
        fewtags.load(run)
    assert peak() - before < 300


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.complex64, torch.bool])
def test_weights_of_another_type(run: Path, dtype: torch.dtype):
    tensors = load_file(run / "model.safetensors")
    name = next(name for name, tensor in tensors.items() if tensor.dtype == torch.float32)
    save_file(tensors | {name: tensors[name].to(dtype)}, run / "model.safetensors")
    with pytest.raises(UserError, match=r"do not fit the recipe"):
        fewtags.load(run)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(run: Path, bad: float):
    tensors = load_file(run / "model.safetensors")
    name = next(name for name in tensors if name.startswith("method.") and name.endswith("weight"))
    tensors[name].view(-1)[0] = bad
    save_file(tensors, run / "model.safetensors")
    with pytest.raises(UserError, match=r"not finite numbers"):
        fewtags.load(run)


# Paths that lead out of the folder.


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


def test_tiny_settings_are_what_the_attacks_change(run: Path):
    """So that the attacks above fail for their own reason."""
    fewtags.load(run)
    assert yaml.safe_load((run / "recipe.yaml").read_text())["feature_size"] == TINY["feature_size"]
