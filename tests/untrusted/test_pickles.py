"""Pickles in place of everything that is read."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import fewtags
from fewtags.completion.complete import complete
from fewtags.errors import UserError
from fewtags.nn import words
from fewtags.nn.backbones import build_backbone
from fewtags.recipe import Recipe
from fewtags.serve.models import open_model
from fewtags.training.run import train
from tests.untrusted.trap import TRAP, Bomb


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
