"""The shim that lets torchvision and a CPU-only torch live together."""

import subprocess
import sys

from fewtags import torchvision_ops as shim

FRESH = """
import importlib, fewtags.torchvision_ops as shim, torch, torchvision, timm
from torchvision.transforms import v2
if shim.DECLARED is not None:  # declared, but not there
    try:
        torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
    except (RuntimeError, NotImplementedError):
        print("fails loudly")
else:
    print("fails loudly", torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5))
importlib.reload(shim)
assert shim.DECLARED is None  # torchvision is imported by now
"""


def test_a_fresh_interpreter_imports_torchvision_and_timm():
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "fails loudly" in done.stdout


def test_nothing_is_declared_where_the_binary_loads(monkeypatch):
    asked: list[str] = []
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.setattr(shim.torch.ops, "load_library", asked.append)
    assert shim.declare_missing() is None
    assert len(asked) == 1
    assert "_C" in asked[0]


def test_nothing_is_declared_without_torchvision(monkeypatch):
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.setattr(shim.importlib.util, "find_spec", lambda name: None)
    assert shim.binary_path() is None
    assert shim.declare_missing() is None


def test_a_file_that_is_no_library_does_not_load(tmp_path):
    (tmp_path / "_C.so").write_bytes(b"not a library")
    assert not shim.binary_loads(str(tmp_path / "_C.so"))
