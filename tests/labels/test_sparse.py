"""Sparse labels say what the dense ones say: rows, hiding, holding out, folds, counts of pairs; on disk too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

import fewtags
from benchmarks.sparse_labels import in_a_process, make_shards
from fewtags.convert import convert
from fewtags.data import counts, open_data, scarce, warnings
from fewtags.errors import UserError
from fewtags.labels import sparse as sparse_module
from fewtags.labels import sparse_hide
from fewtags.labels.formats import open_images, sparse
from fewtags.labels.formats.open_images_sparse import read_sparse as read_open_images
from fewtags.labels.hide import held_out, hide
from fewtags.labels.sparse import SparseLabels, SparseTable, sparse_labels, sparse_table, value_count
from fewtags.labels.table import LabelTable
from fewtags.nn.label_graph import conditional_graph, count_pairs
from fewtags.training.prepare import random_folds
from tests.conftest import TINY
from tests.labels.formats.make import text
from tests.labels.formats.test_open_images import HEADER, TRAIN, root  # noqa: F401  a fixture

ROWS, CATEGORIES = 53, 7


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch):
    for module in (sparse_module, sparse_hide):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 8)


@pytest.fixture
def values() -> np.ndarray:
    rng = np.random.default_rng(0)
    values = rng.integers(-1, 2, (ROWS, CATEGORIES)).astype(np.int8)
    values[[0, 20, ROWS - 1]] = 0
    values[:, 3] = 0
    return values


def table_of(values: np.ndarray) -> LabelTable:
    images = tuple(f"images/{row:03d}.png" for row in range(len(values)))
    splits = tuple("test" if row % 5 == 4 else "train" for row in range(len(values)))
    return LabelTable(images, tuple(f"c{c}" for c in range(values.shape[1])), values, splits)


@pytest.mark.parametrize(
    "rows",
    [np.array([5, 0, 5, 52]), np.array([], int), [3, 4], slice(None), slice(10, 30), slice(50, 99), -1, 7],
    ids=str,
)
def test_rows_are_those_of_the_dense_table(values, rows):
    labels = sparse_labels(values)
    assert labels.shape == values.shape
    np.testing.assert_array_equal(labels[rows], values[rows])
    assert labels[rows].dtype == np.int8


def test_it_stays_sparse_when_rows_are_taken(values):
    chosen = np.array([9, 0, 52, 9])
    np.testing.assert_array_equal(sparse_labels(values).take(chosen)[:], values[chosen])


@pytest.mark.parametrize("known", [0.0, 0.3, 1.0])
def test_the_same_labels_are_hidden_and_held_out(values, known):
    labels = sparse_hide.hide_sparse(sparse_labels(values), known, seed=4)
    visible = hide(values, known, seed=4)
    np.testing.assert_array_equal(labels[:], visible)
    left, held = sparse_hide.hold_out_sparse(labels, 0.4, seed=4)
    kept_out = held_out(visible, 0.4, seed=4)
    np.testing.assert_array_equal(left[:], np.where(kept_out, 0, visible))
    np.testing.assert_array_equal(held[:], np.where(kept_out, visible, 0))


@pytest.mark.parametrize("shape", [(53, 7), (8, 8), (3, 600), (17, 1)])
def test_folds_are_the_same_in_an_eighth_of_the_space(shape):
    folds = sparse_hide.packed_folds(shape, seed=3)
    rows = np.array([0, shape[0] - 1, 1])
    np.testing.assert_array_equal(folds[rows], random_folds(shape, 3)[rows])
    assert folds.bits.nbytes == shape[0] * -(-shape[1] // 8)


def test_the_label_graph_is_the_same(values):
    dense, found = count_pairs(values), count_pairs(sparse_labels(values))
    for name, expected in dense._asdict().items():
        torch.testing.assert_close(getattr(found, name), expected, msg=name)
    for kind in ("smoothed", "released", "identity"):
        graph = conditional_graph(sparse_labels(values), kind)
        torch.testing.assert_close(graph, conditional_graph(values, kind))


def test_what_is_said_about_a_table_is_the_same(values):
    dense = table_of(values)
    thin = sparse_table(dense)
    assert counts(thin) == counts(dense)
    assert scarce(thin) == scarce(dense)
    assert warnings(thin) == warnings(dense)
    assert [value_count(thin.values, v) for v in (-1, 0, 1)] == [int((values == v).sum()) for v in (-1, 0, 1)]
    np.testing.assert_array_equal(thin.split("test").dense().values, dense.split("test").values)


def assert_same(one: LabelTable, other: LabelTable) -> None:
    assert (one.images, one.categories, one.splits) == (other.images, other.categories, other.splits)
    np.testing.assert_array_equal(one.values, other.values)


@pytest.mark.parametrize("images_a_shard", [7, 53, 1000])
def test_shards_there_and_back(values, images_a_shard, tmp_path):
    folder = tmp_path / "shards"
    sparse.write_shards(sparse_table(table_of(values)), folder, tmp_path / "pictures", images_a_shard)
    found, place = sparse.read_sparse(folder)
    assert isinstance(found.values, SparseLabels)
    assert_same(found.dense(), table_of(values))
    assert_same(open_data(f"sparse:{folder}").table, table_of(values))
    assert place == (tmp_path / "pictures").resolve()
    assert len(list(folder.glob("labels-*.parquet"))) == -(-ROWS // images_a_shard)
    stored = sum(pq.read_metadata(file).num_rows for file in folder.glob("labels-*.parquet"))
    assert stored == (values != 0).sum()


def wrong(image: int = 1, category: int = 2, value: int = 1) -> pa.Table:
    return pa.table({"image": [0, image], "category": [1, category], "value": [1, value]})


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (wrong(image=7), r"labels-00000-of-00008.parquet: row 1, column 'image': 7 is not in 0 .. 6"),
        (wrong(category=7), r"row 1, column 'category': 7 is not in 0 .. 6"),
        (wrong(value=2), r"row 1, column 'value': 2 is not 1 \(present\) or -1 \(absent\)"),
        (wrong(value=0), r"row 1, column 'value': 0 is not 1"),
        (wrong(image=0, category=1), "row 1: not sorted by image and category, or a label that is there twice"),
        (wrong().set_column(2, "value", pa.array([1, None])), "some are empty"),
        (wrong().set_column(0, "image", pa.array(["a", "b"])), "whole numbers"),
        (wrong().drop_columns(["value"]), "not a Parquet file with the columns image, category, value"),
    ],
)
def test_damaged_labels_are_told_with_their_place(values, labels, told, tmp_path):
    sparse.write_shards(sparse_table(table_of(values)), tmp_path, tmp_path, 7)
    pq.write_table(labels, tmp_path / "labels-00000-of-00008.parquet")
    with pytest.raises(UserError, match=told):
        sparse.read_sparse(tmp_path)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda folder: (folder / "sparse.json").unlink(), "sparse.json: there is no such file"),
        (lambda folder: (folder / "sparse.json").write_text("{}"), "not fewtags sparse labels of version 1"),
        (lambda folder: (folder / "images-00001-of-00008.parquet").unlink(), "images-00001.*no such file"),
        (
            lambda folder: (folder / "labels-00001-of-00008.parquet").write_text("no"),
            "00001.*not a Parquet",
        ),
        (lambda folder: _about(folder, images=3), "says 3 images, the shards have 53"),
        (lambda folder: _about(folder, categories=[]), "no categories"),
        (lambda folder: _about(folder, shards="8"), "'shards' is missing or wrong"),
        (lambda folder: _split(folder, "dev"), "row 0, column 'split': 'dev' is not train or test"),
    ],
)
def test_damaged_folders_are_told(values, damage, told, tmp_path):
    sparse.write_shards(sparse_table(table_of(values)), tmp_path, tmp_path, 7)
    damage(tmp_path)
    with pytest.raises(UserError, match=told):
        sparse.read_sparse(tmp_path)


def _about(folder: Path, **changes) -> None:
    file = folder / "sparse.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def _split(folder: Path, name: str) -> None:
    file = folder / "images-00000-of-00008.parquet"
    pq.write_table(pq.read_table(file).set_column(1, "split", pa.array([name] * 7)), file)


def test_open_images_without_a_dense_table(root):  # noqa: F811
    table, place, notes = read_open_images(root)
    dense = open_images.read(root)
    assert_same(table.dense(), dense.table)
    assert (place, notes) == (dense.root, dense.notes)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("zz,machine,/m/1,0.3\naa,machine,/m/1,0.7\n", r"line 3, column 'Confidence': '0.7' is not 1 or 0"),
        ("aa,verification,/m/1,1\naa,crowd,/m/1,0\n", "train/aa.jpg: both present and absent: /m/1"),
        ("zz,verification,/m/1,1\n", "no image has a human-verified label"),
    ],
)
def test_open_images_with_mistakes(root, lines, told):  # noqa: F811
    text(root / TRAIN, HEADER + lines)
    text(root / "annotations/validation-annotations-human-imagelabels.csv", HEADER)
    with pytest.raises(UserError, match=told):
        read_open_images(root)


def test_labels_only_leaves_images_where_they_are(root, tmp_path):  # noqa: F811
    made = convert(f"openimages:{root}", tmp_path / "new" / "shards", to="sparse", labels_only=True)
    assert made == tmp_path / "new" / "shards" / "sparse.json"
    assert not list((tmp_path / "new").rglob("*.jpg"))
    data = open_data(f"sparse:{tmp_path / 'new' / 'shards'}")
    assert_same(data.table, open_images.read(root).table)
    assert data.images.open("train/aa.jpg").size == (8, 8)
    for wrong_use in ({"to": "coco"}, {"to": "sparse", "size": 64}, {"to": "sparse", "sample": (1, 1)}):
        with pytest.raises(UserError, match="--labels-only is for --to sparse"):
            convert(f"openimages:{root}", tmp_path / "other", labels_only=True, **wrong_use)


@pytest.mark.parametrize("method", ["hst", "curriculum"])
def test_training_on_shards_is_training_on_the_folder(colours: Path, method: str, tmp_path: Path):
    """To the last bit: the same labels are hidden, held out, folded and counted."""
    convert(str(colours), tmp_path / "shards", to="sparse", labels_only=True)
    read = open_data(f"sparse:{tmp_path / 'shards'}", keep_sparse=True)
    assert isinstance(read.table, SparseTable)
    runs = [
        fewtags.train(data, out=tmp_path / name, method=method, known=0.5, **(TINY | {"epochs": 2}))
        for name, data in (("folder", str(colours)), ("sparse", f"sparse:{tmp_path / 'shards'}"))
    ]
    one, two = (load_file(run / "model.safetensors") for run in runs)
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    scores = [json.loads((run / "metrics.json").read_text())["mAP"] for run in runs]
    assert scores[0] == scores[1]


def test_a_hundred_thousand_images_and_600_categories_in_little_memory(tmp_path: Path):
    """`python -m benchmarks.sparse_labels` is the same for a million; a dense int8 table alone would be 0.06 GiB,
    the random numbers that hide it 0.45, and the counts of pairs 0.9."""
    make_shards(tmp_path / "shards", 100_000, 600, known=0.1)
    found = in_a_process(tmp_path / "shards")
    assert found["known labels"] == pytest.approx(6_000_000, rel=0.01)
    assert found["pairs known present"] > 0
    assert found["largest memory, GiB"] - found["memory before, GiB"] < 0.9
