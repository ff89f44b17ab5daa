"""`prepare_labels` for sparse tables: the same draws, without a dense table of the training images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fewtags.data import check_absents
from fewtags.labels.sparse import SparseLabels, SparseTable
from fewtags.labels.sparse_hide import hide_sparse, hold_out_sparse, packed_folds
from fewtags.labels.table import LabelTable
from fewtags.recipe import Recipe
from fewtags.training.data import KnownLabels


def known_of_sparse(given: SparseTable, recipe: Recipe) -> tuple[SparseTable, KnownLabels]:
    """Hide and hold out → the table that training may see, and what it knows."""
    visible = hide_sparse(given.labels, recipe.known, recipe.seed)
    labels, held = hold_out_sparse(visible, recipe.holdout, recipe.seed)
    train = given.with_values(labels)
    check_absents(train, recipe)
    crossfit = recipe.threshold_labels == "crossfit"
    folds: Any = packed_folds(labels.shape, recipe.seed) if crossfit else None
    kept_out: Any = held if recipe.holdout else None
    known = KnownLabels(
        labels=labels,  # type: ignore[arg-type]  # read by rows, like an array
        held_out=kept_out,
        folds=folds,
        assume_absent=recipe.assume_absent,
        sample_absent=recipe.sample_absent,
        sample_absent_weight=recipe.sample_absent_weight,
    )
    return train, known


def dense_table(table: LabelTable) -> LabelTable:
    return table.dense() if isinstance(table, SparseTable) else table


def dense_known(known: KnownLabels) -> KnownLabels:
    """Dense labels and held-out labels: the scores of all training images are kept dense too when a run ends."""
    parts: dict[str, Any] = {"labels": known.labels, "held_out": known.held_out}
    dense: dict[str, Any] = {k: part[:] if isinstance(part, SparseLabels) else part for k, part in parts.items()}
    return replace(known, **dense)
