"""The answers, in an SQLite file (WAL, synced at every commit): kept before the page hears "saved".

Nothing is ever deleted. An answer is a row of a unit (one key press, or one bulk accept); undoing marks the unit.
The state of an entry is its newest answer whose unit is not undone, so that it does not matter in which order two
tabs answer and undo. Entries are kept by name: they outlive the file of suggestions.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fewtags.errors import UserError
from fewtags.faults import telling
from fewtags.locks import Lock

SCHEMA = """
CREATE TABLE IF NOT EXISTS images (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS categories (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS units (
    id INTEGER PRIMARY KEY,
    request TEXT NOT NULL UNIQUE,  -- made by the page: sent twice, it counts once
    time REAL NOT NULL,
    tab TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('answer', 'bulk')),
    undone REAL                    -- when; NULL: it stands
);
CREATE TABLE IF NOT EXISTS answers (
    image INTEGER NOT NULL REFERENCES images,
    category INTEGER NOT NULL REFERENCES categories,
    unit INTEGER NOT NULL REFERENCES units,
    answer INTEGER NOT NULL,       -- 1 yes, 2 no, 3 skipped
    previous INTEGER NOT NULL,     -- the state before: 0 open, or as above
    PRIMARY KEY (image, category, unit)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_of_unit ON answers (unit);
"""
STANDING = """
SELECT a.image, a.category, a.answer, max(a.unit) FROM answers a JOIN units u ON u.id = a.unit
WHERE u.undone IS NULL GROUP BY a.image, a.category
"""
AFTER_UNDO = """
SELECT i.name, c.name, coalesce((
    SELECT b.answer FROM answers b JOIN units u ON u.id = b.unit
    WHERE b.image = a.image AND b.category = a.category AND u.undone IS NULL ORDER BY b.unit DESC LIMIT 1), 0)
FROM answers a JOIN images i ON i.id = a.image JOIN categories c ON c.id = a.category WHERE a.unit = ?
"""
HISTORY = """
SELECT u.id, u.time, u.tab, u.kind, u.undone, count(*), min(i.name), min(c.name), min(a.answer)
FROM (SELECT * FROM units ORDER BY id DESC LIMIT ?) u
JOIN answers a ON a.unit = u.id JOIN images i ON i.id = a.image JOIN categories c ON c.id = a.category
GROUP BY u.id ORDER BY u.id DESC
"""


class Answer(NamedTuple):
    image: str
    category: str
    answer: int
    previous: int


@dataclass(frozen=True)
class Unit:
    """What one undo takes back."""

    id: int
    time: float
    tab: str
    kind: str
    undone: float | None
    entries: int
    image: str
    category: str
    answer: int


Entries = Iterator[tuple[str, str, int]]
"""(image, category, state): a stream, because a bulk may have millions."""


class Decisions:
    """The file, open for answering: nobody else may have it open so."""

    def __init__(self, path: Path):
        self.path = path
        self.lock = threading.RLock()
        with telling(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._guard = _guard(path)
        self._connection = _connect(path)
        self.before = self._last_unit()
        """The last unit of earlier servers. By number, not by time: a clock may go backwards."""
        self._ids = self._read_ids()

    def close(self) -> None:
        with self.lock:
            self._connection.close()
            self._guard.release()

    def answer(self, answers: Iterable[Answer], tab: str, request: str, kind: str = "answer") -> int | None:
        """Keep these answers as one unit. None: this request was kept before, and nothing was added."""
        with self.lock:
            try:
                with self._connection:
                    return self._insert(answers, tab, request, kind)
            except BaseException:
                self._ids = self._read_ids()  # names that were added are gone with the transaction
                raise

    def undo(self, tab: str, unit: int | None = None) -> tuple[int, str] | None:
        """Take back a unit: this one, else the tab's last, else the last from before this server started.

        Returns it and its kind; `entries_of` then says what stands in its place.
        """
        with self.lock, self._connection:
            chosen = self._undoable(tab) if unit is None else self._standing(unit)
            if chosen is None:
                return None
            self._connection.execute("UPDATE units SET undone = ? WHERE id = ?", (time.time(), chosen[0]))
            return chosen

    def entries_of(self, unit: int) -> Entries:
        """The entries that a unit answered, with their state now."""
        with self.lock:
            yield from self._connection.execute(AFTER_UNDO, (unit,))

    def history(self, limit: int = 50) -> list[Unit]:
        """The newest units, undone ones too."""
        with self.lock:
            return [Unit(*row) for row in self._connection.execute(HISTORY, (limit,))]

    def _insert(self, answers: Iterable[Answer], tab: str, request: str, kind: str) -> int | None:
        insert = "INSERT OR IGNORE INTO units (request, time, tab, kind) VALUES (?, ?, ?, ?)"
        added = self._connection.execute(insert, (request, time.time(), tab, kind))
        if not added.rowcount:
            return None
        rows = (
            (
                self._known("images", a.image),
                self._known("categories", a.category),
                added.lastrowid,
                a.answer,
                a.previous,
            )
            for a in answers
        )
        self._connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", rows)
        return added.lastrowid

    def _undoable(self, tab: str) -> tuple[int, str] | None:
        query = "SELECT id, kind FROM units WHERE undone IS NULL AND {} ORDER BY id DESC LIMIT 1"
        own = self._connection.execute(query.format("tab = ?"), (tab,)).fetchone()
        return own or self._connection.execute(query.format("id <= ?"), (self.before,)).fetchone()

    def _last_unit(self) -> int:
        (last,) = self._connection.execute("SELECT coalesce(max(id), 0) FROM units").fetchone()
        return int(last)

    def _standing(self, unit: int) -> tuple[int, str] | None:
        query = "SELECT id, kind FROM units WHERE undone IS NULL AND id = ?"
        return self._connection.execute(query, (unit,)).fetchone()

    def _known(self, table: str, name: str) -> int:
        """The id of a name; a new one is added."""
        ids = self._ids[table]
        if name not in ids:
            added = self._connection.execute(f"INSERT INTO {table} (name) VALUES (?)", (name,))
            ids[name] = int(added.lastrowid or 0)
        return ids[name]

    def _read_ids(self) -> dict[str, dict[str, int]]:
        tables = ("images", "categories")
        return {table: dict(self._connection.execute(f"SELECT name, id FROM {table}")) for table in tables}


def standing(path: Path) -> Entries:
    """(image, category, answer) of every entry that has one; a snapshot, whatever is answered meanwhile."""
    reader = sqlite3.connect(path, timeout=30)
    try:
        images, categories = (
            dict(reader.execute(f"SELECT id, name FROM {table}")) for table in ("images", "categories")
        )
        for image, category, answer, _ in reader.execute(STANDING):
            yield images[image], categories[category], answer
    finally:
        reader.close()


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(SCHEMA)
    except sqlite3.DatabaseError as problem:
        raise UserError(f"{path}: not a file of answers ({problem}); name another with --db") from problem
    return connection


def _guard(path: Path) -> Lock:
    busy = "another `fewtags review` answers into this file"
    guard = Lock(path.with_name(f"{path.name}.lock"), path, busy, ", or use its page")
    guard.acquire()
    return guard
