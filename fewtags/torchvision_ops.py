"""Makes torchvision importable beside a CPU-only torch; does nothing where torchvision's own binary loads.

pip's torchvision is built against CUDA. Beside a CPU-only torch its binary `_C` cannot load, so the operators
it would declare are missing, and `import torchvision` fails while it attaches Python code to two of them.
Declaring their signatures first is enough: transforms and models do not call them; calling one still fails.

Import this module before torchvision, timm, lightning or torchmetrics.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys

import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def binary_path() -> str | None:
    """Where torchvision's compiled operators are, found without importing it; None: not installed."""
    package = importlib.util.find_spec("torchvision")
    if package is None or not package.submodule_search_locations:
        return None
    loader = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
    for folder in package.submodule_search_locations:
        binary = importlib.machinery.FileFinder(folder, loader).find_spec("_C")
        if binary is not None and binary.origin is not None:
            return binary.origin
    return None


def binary_loads(path: str) -> bool:
    """Whether the operators load into this torch. Loading twice is harmless: torchvision can follow."""
    try:
        torch.ops.load_library(path)
    except (ImportError, OSError):
        return False
    return True


def declare_missing() -> torch.library.Library | None:
    """Declare the two signatures if torchvision is there, is not imported yet, and cannot bring its own."""
    path = binary_path()
    if "torchvision" in sys.modules or path is None or binary_loads(path):
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        library.define(schema)
    return library


# Kept for the life of the process: the declarations go when the library object goes.
DECLARED = declare_missing()
