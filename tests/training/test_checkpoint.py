import pickle

import pytest
import torch

from fewtags.errors import UserError
from fewtags.training.checkpoint import load, save


def test_nested_values_come_back_equal(tmp_path):
    values = {
        "state": {0: {"step": torch.tensor(3.0), "average": torch.randn(2, 3)}},
        "groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "params": [0, 1], "none": None, "flag": True}],
        "name": "θ",
    }
    save(values, tmp_path / "a.safetensors")
    loaded = load(tmp_path / "a.safetensors")
    assert loaded["groups"] == values["groups"]
    assert loaded["name"] == "θ"
    assert torch.equal(loaded["state"][0]["average"], values["state"][0]["average"])
    assert loaded["state"][0]["step"] == 3


def test_shared_tensors_are_saved(tmp_path):
    weight = torch.randn(3)
    save({"a": weight, "b": weight}, tmp_path / "a.safetensors")
    assert torch.equal(load(tmp_path / "a.safetensors")["b"], weight)


def test_objects_are_refused(tmp_path):
    with pytest.raises(TypeError, match="tensors and plain values only"):
        save({"a": object()}, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


class Bomb:
    def __reduce__(self):
        return (open, ("bomb-went-off", "w"))


def test_a_pickle_is_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.safetensors").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UserError, match="not a checkpoint of fewtags"):
        load(tmp_path / "a.safetensors")
    assert not (tmp_path / "bomb-went-off").exists()
