"""What `fewtags reproduce` says: what went in, what came out, and the verdict."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from fewtags.reproduction.outcome import Outcome
from fewtags.reproduction.reproduce import Report

MOST_SHOWN = 8
NO_RECORD = "not recorded: the run was made before fewtags recorded it. Only the results can be compared"


def report_lines(report: Report) -> Group:
    inputs, outcome = report.inputs, report.outcome
    nothing = "the same" if inputs.recorded else NO_RECORD
    lines = [
        *_block("Data", inputs.data, nothing),
        *_block("Recipe", inputs.recipe, nothing),
        *_block("Versions and machine", inputs.environment, nothing, style="yellow"),
    ]
    if outcome is not None:
        lines += [Text(f"Weights: {weight_words(outcome)}"), *_block("Metrics", metric_words(outcome), "the same")]
        if outcome.first_epoch is not None:
            lines.append(Text(f"Training: the same until epoch {outcome.first_epoch}, which differs"))
    return Group(*lines, Text(verdict(report), style="bold green" if report.reproduced else "bold"))


def _block(name: str, differences: list[str], nothing: str, style: str = "red") -> list[Text]:
    if not differences:
        return [Text(f"{name}: {nothing}")]
    return [Text(f"{name}: {len(differences)} different", style), *(Text(f"  - {line}") for line in differences)]


def weight_words(outcome: Outcome) -> str:
    weights = outcome.weights
    if not weights.different:
        return f"the same to the last bit, {weights.tensors} tensors"
    differ = f"{weights.different} of {weights.tensors} tensors differ"
    return differ + f", by at most {weights.largest:.2e} ({weights.where})"


def metric_words(outcome: Outcome) -> list[str]:
    """The best-known ones first."""
    names = sorted(outcome.metrics, key=lambda name: name.count("."))
    shown = [
        f"{name}: {_number(outcome.metrics[name][0])} → {_number(outcome.metrics[name][1])}" for name in names
    ]
    more = [f"and {len(shown) - MOST_SHOWN} more"] if len(shown) > MOST_SHOWN else []
    return shown[:MOST_SHOWN] + more


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def verdict(report: Report) -> str:
    outcome = report.outcome
    if outcome is None:
        if report.inputs.same:
            return "Nothing speaks against it; it was not trained again."
        return "NOT reproduced: it cannot be, as what goes in is different. --anyway trains all the same."
    if report.reproduced:
        how = "bit for bit" if outcome.identical else f"within {report.tolerance:g} points"
        return f"Reproduced {how}."
    if not report.inputs.same:
        return "NOT reproduced: what went in is different." + (" The result is the same." * report.same_result)
    because = "; other versions or machines round differently" if report.inputs.environment else ""
    return f"NOT reproduced: the same data and recipe gave another result{because}."
