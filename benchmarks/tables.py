"""Tables of results.csv: in the terminal, and between markers in docs/performance.md and other pages.

`python -m benchmarks.tables docs/performance.md` writes every table again that stands between
`<!-- table NAME from benchmarks/results.csv -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from benchmarks import evidence, record
from benchmarks.cases import CONTENDERS, WHOLE
from benchmarks.growth import growth
from benchmarks.measure import Measured
from benchmarks.targets import TARGETS, Quantity
from fewtags.benchmark.markdown import markdown
from fewtags.benchmark.table import NOTHING, Cell, Table
from fewtags.errors import UserError
from fewtags.files import write_text

SIZE = ["module", "categories", "batch", "side", "known"]
MARKED = re.compile(r"(<!-- table (?P<name>\S+) from (?P<path>\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
OTHERS = "others"
DOES_NOT_FIT = "does not fit"
NAMES = {
    "sd": "SD: category features",
    "graph": "graph and classifier",
    "intra": "IST: within an image",
    "cross": "CST: across images",
    "thresholds": "DTL: thresholds",
    "heads": "all heads",
    "train": "training step, ResNet-101 at 448²",
    "predict": "inference, ResNet-101 at 448²",
}


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of results.csv → one per case: medians over the rounds; NaN where it does not fit."""
    case = [*SIZE, "contender"]
    grouped = rows.groupby(case, sort=False)[["seconds", "peak_bytes", "loss"]].median()
    fits = rows.assign(fits=rows["status"] == "ok").groupby(case, sort=False)["fits"].all()
    found = grouped.join(fits).reset_index()
    return found.sort_values(["categories", "batch", "side", "known"], kind="stable", ignore_index=True)


def side_by_side(rows: pd.DataFrame, module: str) -> Table:
    """Ours and its rivals by size, and how many times less ours takes (bare: how many times more)."""
    shown = summary(rows[rows["module"] == module])
    rivals = CONTENDERS[module][1:]
    lines = [_line(size, group.set_index("contender"), rivals) for size, group in shown.groupby(SIZE, sort=False)]
    columns = [
        "categories",
        "batch",
        "map",
        "known",
        "ours",
        *(column for rival in rivals for column in _columns(rival)),
    ]
    return Table(NAMES[module], (*columns, "target"), tuple(lines))


def _columns(rival: str) -> tuple[str, ...]:
    return rival.replace("_", ", "), "time", "memory"


def _line(size: tuple, group: pd.DataFrame, rivals: tuple[str, ...]) -> tuple[Cell, ...]:
    module, categories, batch, side, known = size
    cells = [str(categories), str(batch), f"{side}×{side}", f"{100 * known:g} %", cost(group, "ours")]
    for rival in rivals:
        cells += [cost(group, rival), *(_times(ratio(group, rival, q)) for q in ("seconds", "peak_bytes"))]
    return (*map(Cell, cells), Cell("; ".join(judged(module, categories, batch, side, group)) or NOTHING))


def cost(group: pd.DataFrame, contender: str) -> str:
    """`1.27 s, 0.9 GB`"""
    if contender not in group.index:
        return NOTHING
    found = group.loc[contender]
    return f"{seconds(found['seconds'])}, {memory(found['peak_bytes'])}" if found["fits"] else DOES_NOT_FIT


def ratio(group: pd.DataFrame, rival: str, column: str) -> float:
    """What ours saves; against the bare backbone, what it costs. NaN where one of the two is missing."""
    if rival not in group.index or "ours" not in group.index:
        return float("nan")
    ours, other = group.loc["ours", column], group.loc[rival, column]
    return float(ours / other if rival == "bare" else other / ours)


def judged(module: str, categories: int, batch: int, side: int, group: pd.DataFrame) -> list[str]:
    """Each target of this size, and whether it is met."""
    found = []
    for target in TARGETS:
        if target.concerns(module, categories, batch, side):
            value = measured(group, target.quantity, target.rival)
            verdict = "" if value != value else " met" if target.met(value) else " MISSED"
            found.append(f"{target.quantity} {target}{verdict}")
    return found


def measured(group: pd.DataFrame, quantity: Quantity, rival: str) -> float:
    if quantity.endswith("ratio"):
        return ratio(group, rival, "seconds" if quantity.startswith("time") else "peak_bytes")
    if "ours" not in group.index:
        return float("nan")
    ours = group.loc["ours"]
    return float(ours["seconds"] if quantity == "seconds" else ours["peak_bytes"] / 1e9)


def exponents(rows: pd.DataFrame) -> Table:
    """k of cost ≈ a·C^k."""
    found = growth(summary(rows[~rows["module"].isin(WHOLE)]))
    found = found[found["time"].notna()]
    lines = [_growth_line(row) for row in found.to_dict("records")]
    columns = ("module", "contender", "batch", "map", "time", "memory", "sizes fitted")
    return Table("How cost grows with the categories", columns, tuple(lines))


def _growth_line(row: dict) -> tuple[Cell, ...]:
    contender, square = row["contender"].replace("_", ", "), f"{row['side']}×{row['side']}"
    powers = [NOTHING if row[cost] != row[cost] else f"C^{row[cost]:.2f}" for cost in ("time", "memory")]
    cells = (NAMES[row["module"]], contender, str(row["batch"]), square, *powers, str(row["categories"]))
    return tuple(map(Cell, cells))


def _of(module: str) -> Callable[[pd.DataFrame], Table]:
    return lambda rows: side_by_side(rows, module)


TABLES: dict[str, Callable[[pd.DataFrame], Table]] = {module: _of(module) for module in CONTENDERS}
TABLES["growth"] = exponents
EVIDENCE: dict[str, Callable[[pd.DataFrame], Table]] = {
    "claim": evidence.claim,
    "with_discriminant": evidence.with_discriminant,
    "lead": evidence.lead,
    "promise": evidence.promise,
    "simulation": evidence.simulation,
    "tuning": evidence.tuning,
    "changes": evidence.changes,
}
"""Of other CSV files than results.csv."""


def others(figures: list[record.Figure]) -> Table:
    """What the single scripts found."""
    lines = [
        (
            figure.what,
            record.shown(figure, figure.ours),
            f"{record.shown(figure, figure.rival)} ({figure.rival_name})" if figure.rival else NOTHING,
            _times(figure.ratio),
            NOTHING if figure.target is None else f"{record.bound(figure)} {record.verdict(figure)}",
        )
        for figure in figures
    ]
    columns = ("what", "ours", "beside", "ours / beside", "target")
    return Table("Prototypes, metrics, loading", columns, tuple(tuple(map(Cell, line)) for line in lines))


def text(rows: pd.DataFrame) -> str:
    """All tables that have rows, for the terminal."""
    made = [table(rows) for table in TABLES.values()] if len(rows) else []
    return markdown([table for table in made if table.rows])


def regenerated(document: str, folder: Path) -> str:
    """The document with every marked table made again from its CSV below `folder`."""

    def replaced(match: re.Match[str]) -> str:
        path, name = folder / match["path"], match["name"]
        known = TABLES | EVIDENCE
        if name not in (*known, OTHERS):
            raise UserError(f"there is no table {name!r}; there are {', '.join((*known, OTHERS))}")
        if not path.is_file():
            table = None
        else:
            table = others(record.read(path)) if name == OTHERS else known[name](pd.read_csv(path))
        made = markdown([table] if table is not None and table.rows else [])
        return f"{match[1]}\n{made}\n\n{match[4]}"

    return MARKED.sub(replaced, document)


def one_line(found: Measured) -> str:
    if found.status != "ok":
        return found.status
    return f"{seconds(found.seconds)}, {memory(found.peak_bytes)}, loss {found.loss:.6g}, {found.steps} steps"


def seconds(value: float | None) -> str:
    if value is None or value != value:
        return NOTHING
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


def memory(value: float | None) -> str:
    if value is None or value != value:
        return NOTHING
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def _times(value: float) -> str:
    return NOTHING if value != value else f"{value:.3g}×"


def main(arguments: list[str]) -> int:
    for file in map(Path, arguments):
        write_text(file, regenerated(file.read_text(encoding="utf-8"), Path(__file__).parent.parent))
        print(f"{file}: tables made again")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
