"""Writes the line on coverage into a page: `python -m tests.coverage_line README.md`, after `make coverage`."""

from __future__ import annotations

import datetime
import json
import re
import sys
from pathlib import Path

PLACE = re.compile(r"(<!-- coverage -->\n).*?(\n<!-- end -->)", flags=re.DOTALL)


def coverage_line(report: dict, today: datetime.date) -> str:
    """From coverage's JSON report."""
    totals = report["totals"]
    branches = 100 * totals["covered_branches"] / max(1, totals["num_branches"])
    lines = 100 * totals["covered_lines"] / max(1, totals["num_statements"])
    return (
        f"Coverage: {lines:.1f} % of lines, {branches:.1f} % of branches (`make coverage`, {today.isoformat()})."
    )


def with_line(page: str, line: str) -> str:
    changed, places = PLACE.subn(lambda match: f"{match[1]}{line}{match[2]}", page)
    if places != 1:
        raise ValueError("the page has no place for it: <!-- coverage --> ... <!-- end -->")
    return changed


def main(page: Path, report: Path = Path("coverage.json")) -> None:
    line = coverage_line(json.loads(report.read_text(encoding="utf-8")), datetime.date.today())
    page.write_text(with_line(page.read_text(encoding="utf-8"), line), encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
