"""Sizes, headers and values that no honest file has."""

from __future__ import annotations

import json
import resource
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import fewtags
from fewtags.errors import UserError
from tests.untrusted.trap import with_settings

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
    weights = (name for name in tensors if name.startswith("method.") and name.endswith("weight"))
    name = next(name for name in weights if tensors[name].numel())
    tensors[name].view(-1)[0] = bad
    save_file(tensors, run / "model.safetensors")
    with pytest.raises(UserError, match=r"not finite numbers"):
        fewtags.load(run)
