"""`fewtags complete RUN DATA --out DIR`: fill the unknown labels of DATA where it is sure, and say why.

Writes labels.csv, suggestions.parquet, completion.json, completion.html and, with --audit, audit.csv.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy.special import expit

from fewtags.completion.audit import audit_result, drawn, write_audit
from fewtags.completion.calibration import fit_line
from fewtags.completion.figures import LEVELS, figures
from fewtags.completion.filling import (
    Filling,
    Probabilities,
    Question,
    decide,
    fill_without_promise,
    origins,
    probabilities,
)
from fewtags.completion.kept import Kept, read_kept
from fewtags.completion.known import Known, what_is_known
from fewtags.completion.labels_out import completed_table, write_labels
from fewtags.completion.page import completion_page
from fewtags.completion.prior import Shift, estimated_rates, no_shift, read_rates, shift_to
from fewtags.completion.reasons import Decided, Reasons
from fewtags.completion.suggestions import write_suggestions
from fewtags.completion.walk import Walked, walk
from fewtags.data import Data, open_for
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.images.screening import SKIPPED, told, write_skipped
from fewtags.predict import Tagger, load
from fewtags.processes import together
from fewtags.processes.alone import writing_to

USUAL_PRECISION = 0.95


@dataclass(frozen=True)
class Wanted:
    """What a person asks for."""

    precision: float | None = None
    """None: 0.95 if labels were held out, else no promise."""
    confidence: float = 0.95
    prior: str | None = None
    """A CSV of base rates, or `estimate`."""
    audit: int | None = None
    csv: bool = False
    min_probability: float = 0.0
    use_hidden: bool = False
    tokens: str | None = None
    device: str = "auto"
    seed: int = 0
    on_bad_image: str | None = None
    """error or skip; None: as the run was trained."""

    @property
    def risk(self) -> float:
        return round(1 - self.confidence, 12)


@dataclass(frozen=True)
class Looked:
    """All that was found out about the entries to fill, before anything is decided."""

    tagger: Tagger
    data: Data
    kept: Kept
    known: Known
    walked: Walked
    row: np.ndarray
    """(N,) row of the table of each entry to fill."""
    question: Question
    found: Probabilities
    shift: Shift
    rates: np.ndarray | None
    """(C,) base rates asked for or estimated."""

    @property
    def logits(self) -> np.ndarray:
        """(N,) calibrated, at the base rates."""
        return self.found.fill + self.shift.logit[self.question.fill.category]


def complete(
    run: str | Path, data: str, out: str | Path, wanted: Wanted | None = None, console: Console | None = None
) -> dict[str, Any]:
    """Complete DATA with RUN into the folder `out`; returns what completion.json says."""
    wanted, out = wanted or Wanted(), Path(out)
    console = console if console is not None and together.is_writer() else Console(quiet=True)
    _check(wanted, data, out)
    with writing_to(out, "complete"):
        return _complete(run, data, out, wanted, console)


def _complete(run: str | Path, data: str, out: Path, wanted: Wanted, console: Console) -> dict[str, Any]:
    looked = look_at(run, data, wanted, console)
    if not together.is_writer():  # of several processes that looked together, one decides and writes
        return {}
    filling = decided_at(looked, wanted)
    levels = [] if filling.precision is None else level_fillings(looked, wanted, filling)
    about = {"run": str(run), "data": data, "method": looked.tagger.recipe.method}
    report = about | figures(looked, wanted, filling, levels)
    report["notes"] = _write_all(looked, wanted, filling, data, out)
    report["skipped_images"] = [entry.image for entry in looked.data.skipped]
    write_skipped(looked.data.skipped, out / SKIPPED)
    write_text(out / "completion.json", json.dumps(report, indent=2, ensure_ascii=False))
    completion_page(report, out / "completion.html")
    return report


def record_audit(answers: Path, out: Path, confidence: float) -> dict[str, Any]:
    """Read an answered audit.csv; the result goes into DIR/completion.json too, if that is there."""
    found, file = audit_result(answers, confidence), Path(out) / "completion.json"
    if file.is_file():
        report = json.loads(file.read_text(encoding="utf-8"))
        write_text(file, json.dumps(report | {"audit": found}, indent=2, ensure_ascii=False))
    return found


def _check(wanted: Wanted, data: str, out: Path) -> None:
    for name, value in (("precision", wanted.precision), ("confidence", wanted.confidence)):
        if value is not None and not 0.5 <= value < 1:
            raise UserError(f"--{name} {value}: it is at least 0.5 and below 1")
    inside = Path(data) if Path(data).is_dir() else Path(data).parent
    if Path(data).exists() and out.resolve() == inside.resolve():
        raise UserError(f"--out {out}: choose another folder than DATA, whose labels are not overwritten")


def look_at(run: str | Path, data: str, wanted: Wanted, console: Console, opened: Data | None = None) -> Looked:
    """Score every unknown entry, collect its evidence, and calibrate.

    `opened`: what `data` names, if it is at hand or on no disk.
    """
    tagger = load(run, wanted.device)
    kept = read_kept(Path(run), len(tagger.categories))
    _check_held_out(kept, wanted, run)
    opened = opened or open_for(tagger.recipe, data, wanted.tokens, wanted.on_bad_image)
    if opened.skipped:
        console.print(told(opened.skipped), markup=False, highlight=False, soft_wrap=True)
    known = what_is_known(opened.table, data, tagger, kept.held, use_hidden=wanted.use_hidden)
    if not known.to_fill.any():
        raise UserError(f"{data}: no label is unknown, so there is nothing to complete")
    walked = walk(tagger, opened, known, kept.gallery, console)
    row, category = np.nonzero(known.to_fill)
    fill = walked.entries(row, category)
    question = Question(kept.held.entries, kept.held.present, fill, kept.scale, wanted.seed)
    found = probabilities(question)
    shift, rates = _shift(question, found, wanted, tagger.categories)
    return Looked(tagger, opened, kept, known, walked, row, question, found, shift, rates)


def _check_held_out(kept: Kept, wanted: Wanted, run: str | Path) -> None:
    if wanted.precision is not None and not len(kept.held.entries):
        raise UserError(
            f"--precision {wanted.precision}: {run} held no label out of training, so that no precision can be "
            "promised. Train with holdout above 0 (`--holdout 0.1`), or leave --precision out to fill without "
            "a promise"
        )


def _shift(
    question: Question, found: Probabilities, wanted: Wanted, categories: list[str]
) -> tuple[Shift, np.ndarray | None]:
    if wanted.prior is None:
        return no_shift(question.categories, len(question.held)), None
    old = question.scale.rate
    if wanted.prior == "estimate":
        rates = estimated_rates(found.fill, question.fill.category, old)
    else:
        rates = read_rates(wanted.prior, categories, old)
    return shift_to(rates, old, question.held.category, question.present, wanted.seed), rates


def decided_at(looked: Looked, wanted: Wanted, precision: float | None = None) -> Filling:
    """The decisions at the precision asked for, or without a promise if nothing was held out."""
    question, level = looked.question, precision or wanted.precision or USUAL_PRECISION
    if not len(question.held):
        shifted = replace(looked.found, fill=looked.logits)
        return fill_without_promise(question, shifted)
    return decide(question, looked.found, level, wanted.risk, looked.shift)


def level_fillings(looked: Looked, wanted: Wanted, asked: Filling) -> list[Filling]:
    """The same at the usual levels, for a person to choose from."""
    levels = sorted({*LEVELS, asked.precision or USUAL_PRECISION})
    return [asked if level == asked.precision else decided_at(looked, wanted, level) for level in levels]


def _write_all(looked: Looked, wanted: Wanted, filling: Filling, data: str, out: Path) -> list[str]:
    """labels.csv, the suggestions and the audit; returns sentences about them."""
    logits, category = looked.logits, looked.question.fill.category
    origin = origins(filling, logits, looked.found, category)
    decided = Decided(looked.row, category, logits, filling.values, origin)
    notes = _write_labels(looked, decided, data, out, wanted.tokens)
    line = _line(looked)
    reasons = Reasons(looked.data.table.images, looked.tagger.categories, looked.walked, looked.kept.gallery, line)
    shown = decided.part(np.flatnonzero(expit(logits) >= wanted.min_probability))
    for suffix in ("parquet", "csv") if wanted.csv else ("parquet",):
        write_suggestions(reasons.tables(shown), out / f"suggestions.{suffix}")
    if wanted.audit is not None:
        chosen = drawn(filling.values, wanted.audit, wanted.seed)
        write_audit(reasons.table(decided.part(chosen)), out / "audit.csv")
        notes.append(f"{len(chosen)} filled labels to check are in {out / 'audit.csv'}.")
    return notes


def _line(looked: Looked) -> Any:
    """How evidence within an image is to be read, from the held-out labels that have any."""
    held = looked.question.held.intra
    there = ~np.isnan(held)
    return fit_line(held[there], looked.question.present[there])


def _write_labels(looked: Looked, decided: Decided, data: str, out: Path, tokens: str | None) -> list[str]:
    """Rows of images that were left out are written as they were given."""
    table = looked.data.whole or looked.data.table
    of_whole = looked.data.whole_rows()
    shape = len(table), len(looked.tagger.categories)
    changed, values, sure = np.zeros(shape, bool), np.zeros(shape, np.int8), np.zeros(shape, np.float32)
    changed[of_whole] = looked.known.hidden
    place = of_whole[decided.row], decided.category
    values[place] = decided.values
    changed[place] |= decided.values != 0
    sure[place] = expit(np.where(decided.values >= 0, decided.logit, -decided.logit))
    after = completed_table(table, looked.tagger.categories, changed, values, sure)
    return write_labels(data, table, after, out, tokens)
