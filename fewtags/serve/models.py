"""Something that turns images into probabilities: a run folder (torch) or an exported file (ONNX Runtime)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from fewtags.errors import UserError
from fewtags.model_card import ModelCard


class Model(Protocol):
    card: ModelCard
    runtime: str
    """What computes it, with its version."""

    def probabilities(self, images: np.ndarray) -> np.ndarray:
        """(N, 3, S, S) float32, RGB from 0 to 1 → (N, C)."""
        ...


def open_model(source: Path, device: str = "auto", threads: int | None = None) -> Model:
    if source.is_dir():
        return TorchModel(source, device, threads)
    if source.is_file():
        return OnnxModel(source, threads)
    raise UserError(f"{source}: no such run folder or ONNX file")


class OnnxModel:
    def __init__(self, file: Path, threads: int | None = None):
        if find_spec("onnxruntime") is None:
            raise UserError("serving an ONNX file needs onnxruntime: pip install 'fewtags[serve]'")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0  # 0: as many as the machine has cores
        try:
            self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except Exception as problem:  # its exceptions share no base class but this
            raise UserError(
                f"{file}: not a run folder, and no ONNX file that can be read ({problem})"
            ) from problem
        self.card = ModelCard.from_metadata(self.session.get_modelmeta().custom_metadata_map, file)
        self.runtime = f"onnxruntime {onnxruntime.__version__}"

    def probabilities(self, images: np.ndarray) -> np.ndarray:
        (found,) = self.session.run(["probabilities"], {"images": images})
        return found


class TorchModel:
    def __init__(self, run: Path, device: str = "auto", threads: int | None = None):
        import torch

        from fewtags.export import WholeTagger, card_of
        from fewtags.predict import load

        if threads:
            torch.set_num_threads(threads)
        tagger = load(run, device)
        self.card, self.device = card_of(tagger), tagger.device
        self.network = WholeTagger(tagger).eval()
        self.runtime = f"torch {torch.__version__}"

    def probabilities(self, images: np.ndarray) -> np.ndarray:
        import torch

        with torch.inference_mode():
            found, _ = self.network(torch.from_numpy(images).to(self.device))
        return found.cpu().numpy()
