"""`fewtags convert SRC DEST --to sparse --labels-only`: shards for millions of images, which stay in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.files import whole_folder
from fewtags.images.loading import FolderImages
from fewtags.labels.formats import sparse
from fewtags.labels.formats.open_images_sparse import read_sparse as read_open_images
from fewtags.labels.sparse import SparseTable, sparse_table


def convert_sparse(
    spec: str, dest: Path, tokens: str | None, difficult: str, seed: int, say: Callable[[str], object]
) -> Path:
    """Write the labels of SRC as shards into the new folder DEST; sparse.json says where the images are."""
    table, root = _read(spec, tokens, difficult, seed, say)
    with whole_folder(dest) as draft:
        sparse.write_shards(table, draft, root)
    return dest / sparse.ABOUT


def _read(
    spec: str, tokens: str | None, difficult: str, seed: int, say: Callable[[str], object]
) -> tuple[SparseTable, Path]:
    kind, _, path = spec.partition(":")
    if kind == "openimages" and Path(path).is_dir():
        table, root, notes = read_open_images(path)
    else:
        data = open_data(spec, tokens=tokens, seed=seed, difficult=difficult)
        if not isinstance(data.images, FolderImages):
            raise UserError(f"{spec}: its images are in no folder; convert it with --to folder first")
        table, root, notes = sparse_table(data.table), data.images.root, data.notes
    for note in notes:
        say(note)
    return table, root
