"""One round: train on what is known, complete, score against the truth, and note what would be asked next.

A round's folder is a run folder with two more kinds of files:
questions-ORDER.csv   image, category, probability of what this order asks next, first question first
figures.json          its figures; written last, so that a round with it is finished
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from scipy.special import expit

from fewtags.completion.complete import Wanted as Completion
from fewtags.completion.complete import decided_at, look_at
from fewtags.files import write_text
from fewtags.labels.table import PRESENT, UNKNOWN, LabelTable
from fewtags.recipe import Recipe
from fewtags.review.orders import ORDERS, order_rows
from fewtags.simulation.label_table import label_figures
from fewtags.simulation.truth import Known, Truth
from fewtags.training.folder import RunFolder
from fewtags.training.run import train

START, FULL = "start", "full_labels"
FIGURES = "figures.json"
KEPT = {FIGURES, "metrics.json", "recipe.yaml", "history.csv"}
"""Besides the questions; models and checkpoints of many rounds would fill the disk."""
SCORES = ("mAP", "OF1", "CF1")


@dataclass(frozen=True)
class Round:
    seed: int
    order: str
    """Or START, which all orders share, or FULL: all labels."""
    number: int = 0

    @property
    def folder(self) -> str:
        return f"seed-{self.seed}/" + (f"{self.order}-{self.number}" if self.order in ORDERS else self.order)

    def __str__(self) -> str:
        if self.order == FULL:
            return f"seed {self.seed}  all labels"
        return f"seed {self.seed}  {self.order}" + (f"  round {self.number}" if self.number else "")


@dataclass(frozen=True)
class Suggested:
    """N unknown entries: where they are, P(present), and what `complete` decides."""

    row: np.ndarray
    category: np.ndarray
    probability: np.ndarray
    decision: np.ndarray


@dataclass(frozen=True)
class Player:
    """Plays rounds in a folder."""

    truth: Truth
    recipe: Recipe
    folder: Path
    answers: int
    """Questions a round."""
    keep_runs: bool = False

    def path(self, which: Round) -> Path:
        return self.folder / which.folder

    def is_done(self, which: Round) -> bool:
        return (self.path(which) / FIGURES).is_file()

    def play(self, which: Round, known: Known) -> dict[str, Any]:
        """Train, complete, score; returns the figures. A run that was stopped goes on."""
        run = self._train(which, known)
        figures = base_figures(which, known) | scores(run)
        if which.order != FULL:
            suggested = self._suggest(run.path, known)
            figures |= table_figures(self.truth.train.values, known.values, suggested)
            self._note_questions(which, known, suggested)
        write_text(run.path / FIGURES, json.dumps(figures, indent=2))
        if not self.keep_runs:
            tidy(run.path)
        return figures

    def asked_after(self, which: Round, order: str) -> tuple[np.ndarray, np.ndarray]:
        """Rows and categories of the questions that follow a round."""
        return read_questions(questions_file(self.path(which), order), self.truth.train)

    def _train(self, which: Round, known: Known) -> RunFolder:
        run, quiet = RunFolder(self.path(which)), Console(quiet=True)
        if run.is_complete() and (run.path / "model.safetensors").is_file():
            return run
        recipe, resume = self.recipe.replace(seed=which.seed), (run.path / "recipe.yaml").is_file()
        data = self.truth.to_train(known)
        return train(data.name, recipe, run.path, resume=resume, console=quiet, opened=data)

    def _suggest(self, run: Path, known: Known) -> Suggested:
        """What `fewtags complete` says of every unknown entry."""
        if not (known.values == UNKNOWN).any():
            return Suggested(*(np.zeros(0, kind) for kind in (np.int64, np.int64, np.float32, np.int8)))
        wanted, data = Completion(device=self.recipe.device), self.truth.to_complete(known)
        looked = look_at(run, data.name, wanted, Console(quiet=True), opened=data)
        probability = expit(looked.logits).astype(np.float32)
        return Suggested(looked.row, looked.question.fill.category, probability, decided_at(looked, wanted).values)

    def _note_questions(self, which: Round, known: Known, suggested: Suggested) -> None:
        """After the start those of every order, so that another one can be added later."""
        for order in ORDERS if which.order == START else (which.order,):
            chosen = first_questions(order, suggested, known.values, self.answers)
            write_questions(questions_file(self.path(which), order), self.truth.train, suggested, chosen)


def first_questions(order: str, suggested: Suggested, known: np.ndarray, count: int) -> np.ndarray:
    """Places of the `count` suggestions that the review page would ask first in this order."""
    known_present = (known == PRESENT).sum(axis=0)
    return order_rows(order, suggested.probability, suggested.category, known_present)[:count]


def base_figures(which: Round, known: Known) -> dict[str, Any]:
    answers, found = known.answers, known.presents_found
    return {
        "order": which.order,
        "seed": which.seed,
        "round": which.number,
        "answers": answers,
        "asked": answers / known.values.size,
        "presents_found": found,
        "answers_per_present": answers / found if found else None,
        "known": known.share,
    }


def scores(run: RunFolder) -> dict[str, Any]:
    metrics = run.metrics()
    return {name: metrics.get(name) for name in SCORES}


def table_figures(truth: np.ndarray, known: np.ndarray, suggested: Suggested) -> dict[str, float | None]:
    probability, decision = np.zeros(truth.shape, np.float32), np.zeros(truth.shape, np.int8)
    place = suggested.row, suggested.category
    probability[place], decision[place] = suggested.probability, suggested.decision
    return label_figures(truth, known, probability, decision)


def questions_file(folder: Path, order: str) -> Path:
    return folder / f"questions-{order}.csv"


def write_questions(path: Path, train: LabelTable, suggested: Suggested, chosen: np.ndarray) -> None:
    columns = {
        "image": np.array(train.images, dtype=object)[suggested.row[chosen]],
        "category": np.array(train.categories, dtype=object)[suggested.category[chosen]],
        "probability": suggested.probability[chosen],
    }
    write_text(path, pd.DataFrame(columns).to_csv(index=False, lineterminator="\n"))


def read_questions(path: Path, train: LabelTable) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = pd.Index(train.images).get_indexer(pd.Index(table["image"]))
    return rows, pd.Index(train.categories).get_indexer(pd.Index(table["category"]))


def tidy(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in KEPT and not path.match("questions-*.csv"):
            path.unlink()


def read_figures(folder: Path) -> Iterable[dict[str, Any]]:
    """Of every finished round below a folder."""
    for file in sorted(folder.glob(f"seed-*/*/{FIGURES}")):
        yield json.loads(file.read_text(encoding="utf-8"))
