"""`make torture`: kill every command many times, and write what came of it to a page of the docs."""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from fewtags.files import write_text
from tests.nursery import Nursery
from tests.torture.cases import Benchmark, Caching, Case, Complete, Train, Workshop
from tests.torture.kills import Tally, torture
from tests.torture.reviewing import Review

KILLS: dict[type[Case], int] = {Complete: 24, Review: 26, Caching: 20, Train: 26, Benchmark: 12}
BEGIN, END = "<!-- torture: begin -->", "<!-- torture: end -->"
HEAD = ("command", "undisturbed", "kills", "of them while a file was written", "runs", "files looked at", "lost")


def main() -> None:
    options = parser().parse_args()
    folder, started = Path(tempfile.mkdtemp(prefix="torture-")), time.perf_counter()
    nursery = Nursery()
    try:
        tallies = [_told(tally) for tally in all_tallies(Workshop(folder / "shop", nursery), folder, options)]
    finally:
        nursery.close()
    minutes = (time.perf_counter() - started) / 60
    if options.page is not None:
        into_page(options.page, summary(tallies, options.seed, minutes))
    faults = [fault for tally in tallies for fault in tally.faults]
    if faults:
        sys.exit("\n".join([*faults, f"What is left of them is in {folder}"]))
    shutil.rmtree(folder)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    made.add_argument("page", nargs="?", type=Path, help="the page whose table is written anew")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--share", type=float, default=1.0, help="of the usual number of kills")
    made.add_argument("--only", default="", help="commands whose name has this in it")
    return made


def all_tallies(workshop: Workshop, folder: Path, options: argparse.Namespace) -> Iterator[Tally]:
    for kind in KILLS:
        if options.only in kind.name:
            kills = max(1, round(KILLS[kind] * options.share))
            yield torture(kind(workshop), folder / kind.__name__, kills, options.seed)


def _told(tally: Tally) -> Tally:
    print(f"{tally.command}: {tally.kills} kills, {tally.runs} runs, {len(tally.faults)} faults", flush=True)
    return tally


def summary(tallies: Sequence[Tally], seed: int, minutes: float) -> str:
    """The table and what it was made with, as Markdown."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    lines += [_row(tally) for tally in tallies]
    total = Tally("**all**")
    for name in ("kills", "at_a_write", "runs", "files"):
        setattr(total, name, sum(getattr(tally, name) for tally in tallies))
    total.faults = [fault for tally in tallies for fault in tally.faults]
    lines.append(_row(total))
    made_with = f"Python {platform.python_version()}, torch {torch.__version__}, {platform.system()}"
    return "\n".join([*lines, "", f"Seed {seed}; {minutes:.0f} minutes on one core; {made_with}."])


def _row(tally: Tally) -> str:
    seconds = f"{tally.seconds:.1f} s" if tally.seconds else ""
    counts = (tally.kills, tally.at_a_write, tally.runs, f"{tally.files:,}", len(tally.faults))
    return "| " + " | ".join([tally.command, seconds, *map(str, counts)]) + " |"


def into_page(page: Path, text: str) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    write_text(page, f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
