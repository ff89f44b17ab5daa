"""What `fewtags complete` prints."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fewtags.completion.page import headline
from fewtags.report.words import percent

MOST_MESSAGES = 8


def completion_summary(report: dict[str, Any]) -> Group:
    """The headline, the levels to choose from, what is not supported, and what the promise rests on."""
    lines = [Text(headline(report), style="bold")]
    shown = report["messages"][:MOST_MESSAGES]
    if len(report["messages"]) > len(shown):
        shown.append(f"... and {len(report['messages']) - len(shown)} more, in completion.json")
    lines += [Text(message, style="yellow") for message in shown]
    parts: list[Any] = [*lines]
    if report["levels"]:
        parts.append(levels_table(report))
    if report["calibration"] is not None:
        before, after = (report["calibration"][name]["ece"] for name in ("before", "after"))
        parts.append(Text(f"Calibration error (ECE) {before:.3f} before, {after:.3f} after."))
    return Group(*parts, *map(Text, report["caveats"] + report["notes"]))


def levels_table(report: dict[str, Any]) -> Table:
    table = Table(title="Share of the unknown labels filled at a precision", title_justify="left")
    for name in ("precision", "present", "absent", "together"):
        table.add_column(name, justify="right")
    for level in report["levels"]:
        sides = [_reached(level[side]) for side in ("present", "absent")]
        asked = "bold" if level["precision"] == report["precision"] else ""
        table.add_row(f"{level['precision']:g}", *sides, percent(level["coverage"]), style=asked)
    return table


def _reached(side: dict[str, Any]) -> str:
    if side["promised"]:
        return percent(side["coverage"])
    return "–" if side["reachable"] is None else f"– (reachable: {side['reachable']:.2f})"


def audit_lines(found: dict[str, Any]) -> Group:
    """`Filled as present: 94 of 100 right, 0.940 (95 % interval 0.874 to 0.978)`."""
    lines = []
    for side in ("present", "absent"):
        part = found[side]
        if part["answered"]:
            share = f"{part['precision']:.3f} ({percent(found['confidence'])} interval "
            share += f"{part['low']:.3f} to {part['high']:.3f})"
            lines.append(Text(f"Filled as {side}: {part['right']} of {part['answered']} right, {share}"))
        else:
            lines.append(Text(f"Filled as {side}: none answered"))
    return Group(*lines)
