"""One review in progress: suggestions, answers and what is on screen. Safe to call from several threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewtags.review.decisions import Answer, Decisions, Entries, standing
from fewtags.review.filters import Filters
from fewtags.review.index import Index, Names
from fewtags.review.queue import OPEN, STATES, Queue
from fewtags.review.words import question, reason, spoken, suggestion, with_article

SAMPLE_UNSURE, SAMPLE_RANDOM = 6, 6
ROWS_AT_A_TIME = 100_000


class NoSuchEntryError(Exception):
    """The entry is not among the suggestions."""


class ChangedError(Exception):
    """What would be accepted is not what was shown any more."""


@dataclass(frozen=True)
class Saved:
    unit: int | None
    """None: it had been saved before."""
    row: int
    state: int
    previous: int


class Review:
    def __init__(self, index: Index, names: Names, decisions: Decisions):
        self.index, self.names, self.decisions = index, names, decisions
        self.image_codes = {name: code for code, name in enumerate(names.images)}
        self.category_codes = {name: code for code, name in enumerate(names.categories)}
        self.queue = Queue(index)
        self.lock = threading.RLock()
        self._restore()

    def next(
        self, filters: Filters, order: str, wanted: Collection[int], count: int, tab: str, after: int | None = None
    ) -> list[dict[str, Any]]:
        with self.lock:
            rows = self.queue.next(filters, order, wanted, count, tab, after)
        return [self.item(row) for row in rows]

    def progress(self, filters: Filters) -> dict[str, int]:
        """How many suggestions pass the filters, and how many of them are in each state."""
        with self.lock:
            counts = [int(count) for count in self.queue.view(filters).counts]
        return {"total": sum(counts), **dict(zip(STATES, counts, strict=True))}

    def answer(self, image: str, category: str, answer: int, tab: str, request: str) -> Saved:
        """Keep an answer. A second one to the same entry replaces the first, which stays in the history."""
        with self.lock:
            row = self.row(image, category)
            previous = int(self.queue.state[row])
            unit = self.decisions.answer([Answer(image, category, answer, previous)], tab, request)
            if unit is not None:
                self.queue.mark(row, answer)
            return Saved(unit, row, int(self.queue.state[row]), previous)

    def undo(self, tab: str, unit: int | None = None) -> tuple[int, str, np.ndarray] | None:
        """(unit, its kind, the rows it had answered); None: nothing to undo."""
        with self.lock:
            undone = self.decisions.undo(tab, unit)
            if undone is None:
                return None
            rows, states = self._located(self.decisions.entries_of(undone[0]))
            if len(rows) == 1:
                self.queue.mark(int(rows[0]), int(states[0]))
            else:
                self.queue.mark_many(rows, states)
            return *undone, rows

    def bulk_rows(self, filters: Filters, answer: str, level: float) -> np.ndarray:
        """Open rows that pass the filters, at or above the level for yes, at or below it for no."""
        p = self.index.probability
        passes = p >= np.float32(level) if answer == "yes" else p <= np.float32(level)
        with self.lock:
            return np.flatnonzero(passes & self.queue.view(filters).mask & (self.queue.state == OPEN))

    def bulk_sample(self, rows: np.ndarray, answer: str) -> list[int]:
        """The ones nearest the level, where mistakes are, then random others."""
        if not len(rows):
            return []
        p = self.index.probability[rows]
        unsure_first = p if answer == "yes" else -p
        few = min(SAMPLE_UNSURE, len(rows))
        unsure = np.argpartition(unsure_first, few - 1)[:few]
        unsure = unsure[np.argsort(unsure_first[unsure], kind="stable")]
        others = np.random.default_rng(len(rows)).integers(0, len(rows), 4 * SAMPLE_RANDOM)
        chosen = list(dict.fromkeys([*unsure.tolist(), *others.tolist()]))[: SAMPLE_UNSURE + SAMPLE_RANDOM]
        return [int(rows[place]) for place in chosen]

    def bulk(self, filters: Filters, answer: str, level: float, expected: int, tab: str, request: str) -> int:
        """Answer all of them as one unit; `expected` is how many were shown in the preview."""
        state = STATES.index(answer)
        with self.lock:
            rows = self.bulk_rows(filters, answer, level)
            if len(rows) != expected:
                raise ChangedError(f"{len(rows)} suggestions match now, {expected} when you looked; look again")
            answers = (Answer(image, category, state, OPEN) for image, category in self._entries(rows))
            if self.decisions.answer(answers, tab, request, "bulk") is None:
                return 0
            self.queue.mark_many(rows, state)
            return len(rows)

    def _entries(self, rows: np.ndarray) -> Iterator[tuple[str, str]]:
        images, categories = self.names.images, self.names.categories
        for start in range(0, len(rows), ROWS_AT_A_TIME):
            part = rows[start : start + ROWS_AT_A_TIME]
            codes = zip(self.index.image[part].tolist(), self.index.category[part].tolist(), strict=True)
            yield from ((images[image], categories[category]) for image, category in codes)

    def row(self, image: str, category: str) -> int:
        codes = self.image_codes.get(image), self.category_codes.get(category)
        row = None if codes[0] is None or codes[1] is None else self.index.row(codes[0], codes[1])
        if row is None:
            raise NoSuchEntryError(f"{category!r} in {image!r} is not among the suggestions")
        return row

    def item(self, row: int) -> dict[str, Any]:
        """What the page shows of one suggestion."""
        image, category = int(self.index.image[row]), int(self.index.category[row])
        name, origin, decision = self.names.categories[category], self.index.origin(row), self.index.decision(row)
        probability = float(self.index.probability[row])
        reasons = self._reasons(row)
        return {
            "row": row,
            "image": self.names.images[image],
            "image_number": image,
            "category": name,
            "category_number": category,
            "named": with_article(spoken(name)),
            "question": question(name),
            "probability": round(probability, 4),
            "decision": decision,
            "suggestion": suggestion(decision),
            "origin": origin,
            "reason": reason(name, origin, reasons),
            "score": reasons["score"],
            "intra": reasons["intra"],
            "known": reasons["intra_because"],
            "cross": reasons["cross"],
            "similar": [self._similar(because) for because in reasons["cross_because"]],
            "state": STATES[self.queue.state[row]],
        }

    def _reasons(self, row: int) -> dict[str, Any]:
        found = self.index.reasons(row)
        return found | {name: json.loads(found[name] or "[]") for name in ("intra_because", "cross_because")}

    def _similar(self, because: dict[str, Any]) -> dict[str, Any]:
        return {**because, "image_number": self.image_codes.get(because["image"])}

    def _restore(self) -> None:
        """The states of the rows, from all answers that stand."""
        self.queue.mark_many(*self._located(standing(self.decisions.path)))

    def _located(self, entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        """Rows and states; entries of an older file that are no longer suggested are left out."""
        codes = (
            (self.image_codes.get(image, -1), self.category_codes.get(category, -1), state)
            for image, category, state in entries
        )
        found = np.fromiter(codes, dtype=np.dtype((np.int32, 3))).reshape(-1, 3)
        rows = self.index.rows(found[:, 0], found[:, 1])
        return rows[rows >= 0], found[rows >= 0, 2].astype(np.uint8)
