"""What the figures say, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from fewtags import durations
from fewtags.report.palette import MODULES
from fewtags.report.runs import Run

NARROW = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
UPPER_BOUND = "full_labels"


def points(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def signed(value: float | None) -> str:
    """+6.2, −1.0, 0.0."""
    if value is None:
        return ""
    text = f"{abs(value):.1f}"
    return text if float(text) == 0 else ("+" if value > 0 else MINUS) + text


def percent(share: float) -> str:
    return f"{100 * share:.{0 if share >= 0.1 or share == 0 else 1}f}{NARROW}%"


def count(number: float) -> str:
    return f"{round(number):,}"


def duration(seconds: float | None) -> str:
    """As everywhere, and never broken over two lines."""
    return durations.duration(seconds).replace(" ", NARROW)


def ranked(runs: Sequence[Run]) -> list[Run]:
    """Best first; the upper bound, which saw all labels, after its rivals, and what has no mAP last."""
    return sorted(runs, key=lambda run: (run.method == UPPER_BOUND, -(-1.0 if run.map is None else run.map)))


def headline(runs: Sequence[Run]) -> str:
    """One sentence: who reaches what with how many labels, and how far apart they are."""
    first, *others = ranked(runs)
    if first.map is None:
        return f"{first.name} could not be scored: no test label is known."
    sentence = f"{first.name} reaches {points(first.map)} mAP{_with_labels(first)}"
    return sentence + "".join(_beside(first, other, index) for index, other in enumerate(others)) + "."


def _with_labels(run: Run) -> str:
    if run.known is None:
        return ""
    return " with all given labels" if run.known >= 1 else f" with {percent(run.known)} of the labels"


def _beside(first: Run, other: Run, index: int) -> str:
    if other.map is None or first.map is None:
        return f"; {other.name} could not be scored"
    if other.method == UPPER_BOUND:
        return f"; trained on all labels: {points(other.map)}"
    labels = "" if other.known == first.known else _with_labels(other)
    gap = first.map - other.map
    if index == 0 and not labels:
        ahead = f"{points(gap)} points ahead of" if round(gap, 1) else "level with"
        return f", {ahead} {other.name} ({points(other.map)})"
    return f"; {other.name} {points(other.map)}{labels}"


def filled_sentence(run: Run) -> str:
    """What the run filled in during its last epoch, how much of it is right, and the ceiling; "" when nothing."""
    parts = [part for part in (_module_sentence(run, module) for module in MODULES) if part]
    if not parts:
        return ""
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    return f"In its last epoch {run.name} filled in {listed}." + _ceiling_sentence(run)


def _module_sentence(run: Run, module: str) -> str:
    made, right = last(run, f"pseudo/{module}_made"), last(run, f"pseudo/{module}_right")
    if made is None:
        return ""
    judged = f" ({percent(right / made)} right)" if right is not None and made > 0 else ""
    return f"{count(made)} labels from {MODULES[module]}{judged}"


def _ceiling_sentence(run: Run) -> str:
    reachable, hidden = last(run, "pseudo/reachable"), last(run, "pseudo/hidden_present")
    if reachable is None or not hidden:
        return ""
    return (
        f" Evidence within an image can reach at most {percent(reachable / hidden)} of the {count(hidden)} hidden"
        " present labels: the others are in images where no present label is known."
    )


def last(run: Run, column: str) -> float | None:
    series = run.series(column)
    return float(series.iloc[-1]) if len(series) else None
