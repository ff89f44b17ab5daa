"""A table as it is shown: text in cells, the best marked. The page and the documents draw the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fewtags.benchmark.grid import Score
from fewtags.benchmark.statistics import Comparison

NOTHING = "–"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Cell:
    text: str
    best: bool = False
    code: bool = False
    """A name to type, such as a method's."""
    tone: str = ""
    """"up" or "down": a difference that the paired test shows."""


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    """Sentences below it."""
    scope: str = ""
    """What its figures are taken over, a sentence of its own below it."""


def name(method: str) -> Cell:
    return Cell(method, code=True)


def percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def shares(known: Sequence[float]) -> str:
    """10, 50 %."""
    return ", ".join(f"{100 * share:.4g}" for share in known) + " %"


def points(score: Score | None, seeds: int) -> str:
    """`42.8 ± 0.7`; with fewer seeds than the others `42.8 ± 0.7 (2 of 3)`."""
    if score is None:
        return NOTHING
    spread = "" if score.std is None else f" ± {score.std:.1f}"
    return f"{score.mean:.1f}{spread}" + (f" ({score.seeds} of {seeds})" if score.seeds < seeds else "")


def figure(value: float | None, digits: int = 1) -> str:
    return NOTHING if value is None or value != value else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 1) -> str:
    """+6.2, −1.0, 0.0."""
    if value is None or value != value:
        return NOTHING
    text = f"{abs(value):.{digits}f}"
    return text if float(text) == 0 else ("+" if value > 0 else MINUS) + text


def p_value(p: float | None) -> str:
    return NOTHING if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def column_of(scores: Sequence[Score | None], seeds: int) -> list[Cell]:
    """One column of scores, those that show the highest mean marked; a lone one is not called the best.

    Nor is one over fewer seeds than others: seeds differ by more than methods do.
    """
    most = max((score.seeds for score in scores if score is not None), default=0)
    found = [f"{score.mean:.1f}" for score in scores if score is not None and score.seeds == most]
    top = max(found, key=float) if len(found) > 1 else None
    return [
        Cell(
            points(score, seeds),
            best=score is not None and score.seeds == most and f"{score.mean:.1f}" == top,
        )
        for score in scores
    ]


def rows_from(columns: Iterable[Sequence[Cell]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(zip(*columns, strict=True))


def said_once(tables: Sequence[Table]) -> list[Table]:
    """The same tables, scopes among the notes; a note that a later one repeats stands only below the last."""
    later = [{note for after in tables[place + 1 :] for note in after.notes} for place in range(len(tables))]
    return [
        replace(table, notes=(*filter(None, [table.scope]), *(n for n in table.notes if n not in repeated)))
        for table, repeated in zip(tables, later, strict=True)
    ]


def without_empty_columns(table: Table) -> Table:
    """The same without columns that say nothing in any row, such as p-values where nothing is decidable."""
    kept = [
        i for i in range(len(table.columns)) if not table.rows or any(r[i].text != NOTHING for r in table.rows)
    ]
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[i] for i in kept), rows=rows)


def comparison_cells(comparison: Comparison, digits: int = 1) -> tuple[Cell, ...]:
    """blocks, difference, 95 % interval, ahead / level / behind, p, p after Holm, verdict."""
    interval = NOTHING
    if comparison.low is not None and comparison.high is not None:
        interval = f"{signed(comparison.low, digits)} to {signed(comparison.high, digits)}"
    tone = {"ahead": "up", "behind": "down"}.get(comparison.verdict, "")
    return (
        Cell(str(comparison.blocks)),
        Cell(signed(comparison.difference, digits), tone=tone),
        Cell(interval),
        Cell(f"{comparison.wins} / {comparison.ties} / {comparison.losses}"),
        Cell(p_value(comparison.p)),
        Cell(p_value(comparison.adjusted)),
        Cell(comparison.verdict, tone=tone),
    )


COMPARISON_COLUMNS = (
    "blocks",
    "mean difference",
    "95 % interval",
    "ahead / level / behind",
    "p",
    "p, Holm",
    "verdict",
)


def seeds_note(seeds: Sequence[int], tables_rows: Sequence[Sequence[Cell]]) -> list[str]:
    """What the spread is, and what "(2 of 3)" means where it occurs."""
    if len(seeds) < 2:
        return ["One seed: no spread can be given."]
    note = [f"Mean ± standard deviation over {len(seeds)} seeds."]
    if any(f" of {len(seeds)})" in cell.text for row in tables_rows for cell in row):
        note.append(
            f'"(1 of {len(seeds)})": only so many of the {len(seeds)} seeds are done; such a mean is not to be '
            "held against one over others."
        )
    return note


def average_note(shared: Sequence[float], shown: Sequence[float]) -> str:
    if len(shown) < 2:
        return ""
    if not shared:
        return "No average: no known share has all of these methods yet."
    if len(shared) == 1:
        return f"No average: only {percent(shared[0])} known has all of these methods so far."
    return f"The average is over {shares(shared)} known, where all of these methods have rows."
