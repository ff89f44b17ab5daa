"""Example images of a run for its report: known and filled labels, attention, co-occurrence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fewtags.batch import Batch
from fewtags.data import Data, open_for
from fewtags.files import whole_file, write_text
from fewtags.methods.hst import Hst
from fewtags.predict import Tagger, load
from fewtags.training.data import Collate
from fewtags.training.folder import RunFolder
from fewtags.training.prepare import Prepared, prepare_labels

CANDIDATES = 256
EXAMPLES = 6
MATRIX_CATEGORIES = 12
PICTURE_SIDE = 320


def write_examples(
    run: Path,
    attention_of: Mapping[str, Path] | None = None,
    no_loss: Path | None = None,
    rows: list[int] | None = None,
) -> list[int]:
    """Write RUN/examples/: a few training images and what the model makes of them. Returns which rows they are.

    `rows`: these instead of those with the most filled labels; `attention_of`: more runs whose attention is shown
    on the same images, by the name of what makes it; `no_loss`: a run trained without L_ist, for its matrix.
    """
    tagger = load(run)
    labels = RunFolder(run).labels()
    data = open_for(tagger.recipe, labels.data, labels.tokens)
    prepared = prepare_labels(data, tagger.recipe)
    rows = choose_rows(tagger, data, prepared) if rows is None else rows
    views: list[tuple[str, Tagger]] = [(tagger.recipe.category_features, tagger)]
    views += [(kind, load(other)) for kind, other in (attention_of or {}).items()]
    images = [_example(row, position, tagger, views, data, prepared, run) for position, row in enumerate(rows)]
    found: dict[str, Any] = {"images": images}
    if isinstance(tagger.method, Hst) and tagger.method.intra is not None and rows:
        other = None if no_loss is None else load(no_loss)
        found["cooccurrence"] = _matrices(rows[0], tagger, other, data, prepared)
    write_text(run / "examples" / "examples.json", json.dumps(found))
    return rows


def choose_rows(tagger: Tagger, data: Data, prepared: Prepared) -> list[int]:
    """Training images with the most filled labels among the first ones; else those with most known present."""
    candidates = np.arange(min(CANDIDATES, len(prepared.train)))
    known_present = (prepared.known.labels[candidates] == 1).sum(1)
    filled = np.zeros(len(candidates))
    if isinstance(tagger.method, Hst):
        for start in range(0, len(candidates), tagger.recipe.batch_size):
            part = candidates[start : start + tagger.recipe.batch_size]
            _, outputs, batch = look(tagger, data, prepared, part)
            found = _proposals(tagger.method, outputs, batch)
            filled[part] = sum(proposed.sum(1).numpy() for proposed, _ in found.values())
    order = np.lexsort((candidates, -known_present, -np.minimum(filled, 4)))
    return [int(row) for row in candidates[order[:EXAMPLES]]]


@torch.no_grad()
def look(
    tagger: Tagger, data: Data, prepared: Prepared, rows: np.ndarray
) -> tuple[list[Any], dict[str, Tensor], Batch]:
    """The pictures of these training rows, the network's outputs, and what is known of them."""
    pictures = [data.images.open(prepared.train.images[row]) for row in rows]
    inputs = torch.stack([tagger.transform(picture) for picture in pictures]).to(tagger.device)
    outputs = {name: value.cpu() for name, value in tagger.method(tagger.backbone(inputs)).items()}
    batch = Collate(prepared.known, tagger.recipe.seed)(([(int(row), 0) for row in rows], inputs.cpu()))
    return pictures, outputs, batch


@torch.no_grad()
def _proposals(method: Hst, outputs: dict[str, Tensor], batch: Batch) -> dict[str, tuple[Tensor, Tensor]]:
    """module → (proposed, evidence), each (B, C)."""
    found = method.transferred(outputs, batch)
    proposals = {name: (part.proposed, part.evidence) for name, part in found.items()}
    if method.own is not None:
        scores = outputs.get("plain", outputs["logits"])
        proposals["own"] = method.own(scores, batch), torch.sigmoid(scores)
    return proposals


def _example(
    row: int,
    position: int,
    tagger: Tagger,
    views: list[tuple[str, Tagger]],
    data: Data,
    prepared: Prepared,
    run: Path,
) -> dict[str, Any]:
    (picture,), outputs, batch = look(tagger, data, prepared, np.array([row]))
    file = f"{position}.png"
    with whole_file(run / "examples" / file) as draft:
        picture.resize((PICTURE_SIDE, PICTURE_SIDE)).save(draft)
    labels, names = prepared.known.labels[row], tagger.categories
    hidden = None if prepared.hidden is None else prepared.hidden[row]
    filled = _filled(tagger, outputs, batch, hidden)
    probabilities = torch.sigmoid(outputs["logits"][0]).numpy()
    shown = _shown_categories(labels, filled, probabilities, names)
    return {
        "file": file,
        "name": prepared.train.images[row],
        "known_present": [names[c] for c in np.flatnonzero(labels == 1)],
        "known_absent": [names[c] for c in np.flatnonzero(labels == -1)],
        "hidden_present": None if hidden is None else [names[c] for c in np.flatnonzero(hidden == 1)],
        "filled": filled,
        "predicted": [
            {"category": tag.category, "probability": tag.probability} for tag in tagger.tags(probabilities)
        ],
        "attention": [
            entry for kind, other in views for entry in _attention(kind, other, data, prepared, row, shown)
        ],
    }


def _filled(
    tagger: Tagger, outputs: dict[str, Tensor], batch: Batch, hidden: np.ndarray | None
) -> list[dict[str, Any]]:
    if not isinstance(tagger.method, Hst):
        return []
    return [
        {
            "category": tagger.categories[category],
            "module": module,
            "evidence": float(evidence[0, category]),
            "right": None if hidden is None else bool(hidden[category] == 1),
        }
        for module, (proposed, evidence) in _proposals(tagger.method, outputs, batch).items()
        for category in torch.nonzero(proposed[0]).squeeze(1).tolist()
    ]


def _shown_categories(
    labels: np.ndarray,
    filled: list[dict[str, Any]],
    probabilities: np.ndarray,
    names: list[str],
    most: int = 3,
) -> list[str]:
    """What attention is drawn for: known present, filled, then likely categories."""
    likely = [names[c] for c in np.argsort(-probabilities)]
    wanted = [names[c] for c in np.flatnonzero(labels == 1)] + [entry["category"] for entry in filled] + likely
    return list(dict.fromkeys(wanted))[:most]


def _attention(
    kind: str, tagger: Tagger, data: Data, prepared: Prepared, row: int, categories: list[str]
) -> list[dict[str, Any]]:
    _, outputs, _ = look(tagger, data, prepared, np.array([row]))
    if "attention" not in outputs:
        return []
    maps = outputs["attention"][0]
    return [
        {"category": name, "kind": kind, "map": maps[tagger.categories.index(name)].tolist()}
        for name in categories
    ]


def _matrices(row: int, tagger: Tagger, no_loss: Tagger | None, data: Data, prepared: Prepared) -> dict[str, Any]:
    """P(i | j) on one image: on the average, learned without and with L_ist."""
    assert isinstance(tagger.method, Hst)
    _, outputs, _ = look(tagger, data, prepared, np.array([row]))
    chosen = np.argsort(-outputs["logits"][0].numpy())[:MATRIX_CATEGORIES]
    statistical = tagger.method.tagger.adjacency.cpu().numpy()
    matrices = {"statistical": statistical[np.ix_(chosen, chosen)]}
    if no_loss is not None:
        matrices["ist_without_loss"] = _pair_matrix(no_loss, data, prepared, row, chosen)
    matrices["ist"] = _pair_matrix(tagger, data, prepared, row, chosen)
    return {
        "image": "0.png",
        "categories": [tagger.categories[c] for c in chosen],
        "matrices": {name: matrix.round(4).tolist() for name, matrix in matrices.items()},
    }


@torch.no_grad()
def _pair_matrix(tagger: Tagger, data: Data, prepared: Prepared, row: int, chosen: np.ndarray) -> np.ndarray:
    """(chosen, chosen): rows are given, columns are asked for."""
    assert isinstance(tagger.method, Hst)
    assert tagger.method.intra is not None
    _, outputs, batch = look(tagger, data, prepared, np.array([row]))
    given = torch.from_numpy(chosen)
    known = batch.labels, tagger.method.tagger.adjacency
    scores = tagger.method.intra.pair_logits(0, outputs["features"], torch.zeros_like(given), given, *known)
    matrix = torch.sigmoid(scores)[:, given].numpy()
    np.fill_diagonal(matrix, 0)
    return matrix
