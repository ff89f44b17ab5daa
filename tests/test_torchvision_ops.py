"""The shim that lets torchvision and a CPU-only torch live together. Each case needs a fresh interpreter."""

import subprocess
import sys

FAKE_BINARY = """
import torch
asked = []
torch.ops.load_library = asked.append  # a binary that loads
import fewtags.torchvision_ops as shim
assert len(asked) == 1 and "_C" in asked[0], asked
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_transforms_and_timm_import_after_the_shim():
    code = "import fewtags.torchvision_ops; from torchvision.transforms import v2; import timm; print(v2.Resize)"
    assert "Resize" in run(code)


def test_a_second_import_and_a_late_import_are_harmless():
    again = "importlib.reload(shim); assert shim.DECLARED is None"
    run(f"import importlib, fewtags.torchvision_ops as shim, torchvision; {again}")


def test_nothing_is_declared_where_the_binary_loads():
    run(FAKE_BINARY + "assert shim.DECLARED is None\nassert not hasattr(torch.ops.torchvision, 'nms')")


def test_nothing_is_declared_without_torchvision():
    hide = "import importlib.util as u; real = u.find_spec\n"
    hide += "u.find_spec = lambda name, *a: None if name == 'torchvision' else real(name, *a)\n"
    run(hide + "import fewtags.torchvision_ops as shim\nassert shim.DECLARED is None")


def test_a_missing_operator_fails_loudly_when_called():
    code = """
import fewtags.torchvision_ops as shim, torch, torchvision
if shim.DECLARED is not None:
    try:
        torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
    except (RuntimeError, NotImplementedError):
        print("failed")
else:
    print("failed")
"""
    assert "failed" in run(code)
