"""The one honest figure on own data: a person looks at a random sample of what was filled.

`--audit N` draws it into audit.csv, a file of suggestions with one more column, `answer`; `--audit-result FILE`
reads the answers. Half of the sample is of labels filled as present and half of those filled as absent, because
their precision is promised apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
from scipy.stats import beta

from fewtags.completion.suggestions import ABSENT, PRESENT, SCHEMA
from fewtags.errors import Problems, UserError
from fewtags.files import whole_file

ANSWER = "answer"
MEANING = {
    PRESENT: PRESENT, "yes": PRESENT, "y": PRESENT, "1": PRESENT, "true": PRESENT,
    ABSENT: ABSENT, "no": ABSENT, "n": ABSENT, "0": ABSENT, "false": ABSENT,
    "": None, "skip": None, "unknown": None,
}  # fmt: skip


def drawn(values: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Decisions (N,) of +1, 0, -1 → places of a random sample of the filled ones, half of each kind if it can."""
    draw = np.random.default_rng((seed, 43))
    kinds = [draw.permutation(np.flatnonzero(values == value)) for value in (1, -1)]
    first = max(count - count // 2, count - len(kinds[1]))
    taken = [kinds[0][:first], kinds[1][: count - min(first, len(kinds[0]))]]
    return np.sort(np.concatenate(taken))


def write_audit(table: pa.Table, path: Path) -> None:
    """Suggestions with an empty column `answer`."""
    answers = pa.array([""] * len(table), pa.string())
    with whole_file(path) as draft:
        pacsv.write_csv(table.select(SCHEMA.names).append_column(ANSWER, answers), draft)


def audit_result(path: str | Path, confidence: float = 0.95) -> dict[str, Any]:
    """Per kind of decision: answered, right, precision and its Clopper-Pearson interval."""
    answers = _read(Path(path))
    found: dict[str, Any] = {"file": str(path), "confidence": confidence}
    for decision in (PRESENT, ABSENT):
        answered = answers[(answers["decision"] == decision) & answers["meaning"].notna()]
        right = int((answered["meaning"] == decision).sum())
        found[decision] = _figure(right, len(answered), confidence)
    return found


def _figure(right: int, answered: int, confidence: float) -> dict[str, Any]:
    low, high = interval(right, answered, confidence)
    share = right / answered if answered else None
    return {"answered": answered, "right": right, "precision": share, "low": low, "high": high}


def interval(right: int, count: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's: it covers the true share with at least this confidence."""
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, right, count - right + 1)) if right else 0.0
    high = float(beta.ppf(1 - tail, right + 1, count - right)) if right < count else 1.0
    return low, high


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; `fewtags complete ... --audit 200` writes audit.csv")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if missing := [name for name in ("decision", ANSWER) if name not in table]:
        raise UserError(f"{path}: no column {', '.join(missing)}; is it an audit.csv?")
    problems = Problems(str(path))
    for line, text in enumerate(table[ANSWER], start=2):
        if text.strip().lower() not in MEANING:
            problems.add(f"line {line}, column {ANSWER!r}: {text!r} is neither yes, no nor blank")
    problems.raise_if_any()
    table["meaning"] = [MEANING[text.strip().lower()] for text in table[ANSWER]]
    if table["meaning"].isna().all():
        raise UserError(f"{path}: nothing is answered yet; write yes or no into the column {ANSWER!r}")
    return table
