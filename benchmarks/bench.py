"""What fewtags costs beside the formulas as printed, and beside the bare backbone: `make bench`.

Every case runs in a process of its own. The contenders of one size alternate, round after round, so that a machine
that slows down slows all of them; medians are compared. Rows go to results.csv as they come; what is there is not
measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

import pandas as pd

from benchmarks import tables
from benchmarks.cases import Case, all_cases, chosen, least_bytes, quick_cases
from benchmarks.measure import MARK, Measured, available_bytes
from fewtags.files import write_text

RESULTS = Path(__file__).parent / "results.csv"
FOLDER = Path(__file__).parent.parent
SHARE_OF_MEMORY = 0.85


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    cases = chosen(quick_cases() if options.quick else all_cases(), options.cases)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or (Path(scratch) / RESULTS.name if options.quick else RESULTS)
        rows = bench(cases, out, options)
    print(tables.text(rows))
    return 0


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--cases", nargs="*", default=[], help="beginnings or patterns of names: sd heads/C80/*/7x7"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often the contenders alternate")
    parser.add_argument("--out", type=Path, help=f"CSV to add rows to; default: {RESULTS.name} beside this file")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--patience", type=float, default=5.0, help="seconds of timed steps per process")
    parser.add_argument("--memory", type=float, help="GB a case may take; default: 85 %% of what is free")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything run?")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    return parser.parse_args(arguments)


def bench(cases: list[Case], out: Path, options: argparse.Namespace) -> pd.DataFrame:
    """Measure what `out` does not have yet; all rows."""
    rows = read(out)
    for case, turn in schedule(cases, options.rounds):
        if is_done(rows, case, turn):
            continue
        print(f"{case.name} (round {turn})", end=" ", flush=True)
        found = attempt(case, options)
        print(tables.one_line(found), flush=True)
        row = {**case.key(), "round": turn, **asdict(found), "threads": options.threads}
        rows = pd.concat([rows, pd.DataFrame([row])], ignore_index=True) if len(rows) else pd.DataFrame([row])
        write_text(out, rows.to_csv(index=False))
    return rows


def schedule(cases: list[Case], rounds: int) -> Iterator[tuple[Case, int]]:
    """Size after size; within a size ours, textbook, ours, textbook, ..."""
    for _, group in groupby(cases, key=lambda case: (case.size, case.known)):
        contenders = list(group)
        for turn in range(1, rounds + 1):
            for case in contenders:
                yield case, turn


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def is_done(rows: pd.DataFrame, case: Case, turn: int) -> bool:
    """Measured already; what did not fit once is not tried again."""
    if not len(rows):
        return False
    same = pd.Series(True, index=rows.index)
    for name, value in case.key().items():
        same &= rows[name] == value
    return bool((same & ((rows["round"] == turn) | (rows["status"] == "does not fit"))).any())


def attempt(case: Case, options: argparse.Namespace) -> Measured:
    """In a process of its own, unless it cannot fit anyway."""
    limit = int(options.memory * 1e9) if options.memory else int(SHARE_OF_MEMORY * available_bytes())
    if case.scale == "paper" and least_bytes(case) > limit:
        return Measured("does not fit")
    what = json.dumps(case.key()), str(limit), str(options.patience)
    threads = {"OMP_NUM_THREADS": str(options.threads), "MKL_NUM_THREADS": str(options.threads)}
    command = [sys.executable, "-m", "benchmarks.measure", *what]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, env=os.environ | threads)
    marked = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not marked:
        raise SystemExit(f"{case.name} failed (exit code {done.returncode}):\n{done.stderr[-2000:]}")
    return Measured(**json.loads(marked[-1].removeprefix(MARK)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
