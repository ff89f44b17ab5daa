"""Is one method ahead of every other? By seeds, and by test images: the claim of docs/protocol.md.

    python -m benchmarks.claim SWEEP data/coco-sample --out benchmarks/claim.csv

SWEEP is the folder of a `fewtags benchmark` whose runs are there with their predictions. For each rival, at each
known share and on their average: a paired one-sided t over seeds, with Holm's correction over the rivals; and
1,000 draws of as many test images, with replacement, the same for both methods and all seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from fewtags.benchmark.cells import Cell, short_name
from fewtags.benchmark.grid import UPPER_BOUND
from fewtags.benchmark.results import read_results
from fewtags.benchmark.statistics import holm_adjusted
from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.training.folder import RunFolder

DRAWS = 1000
AVERAGE = "average"
NEVER_A_RIVAL = (UPPER_BOUND, "hst_fb")
"""One saw every label; the other is the method itself with an addition."""
VARIANT = "."
"""In the name of a method's variant, such as `hst.sa`: no rival either."""
Scores = dict[tuple[float, str, int], np.ndarray]
"""known, method, seed → mAP in percent of the test images and of each draw of them, (1 + DRAWS,)."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    rows = contenders(read_results(options.sweep))
    data = short_name(options.data)
    rows = rows[rows["data"] == data]
    table = open_data(options.data).table.split("test")
    drawn = draws(len(table.values), options.draws)
    found: Scores = {}
    for row in rows.itertuples():
        cell = Cell(data, options.data, str(row.method), float(row.known), int(row.seed))
        images, scores = RunFolder(Path(options.sweep) / "runs" / cell.folder).predictions()
        if images != list(table.images):
            raise UserError(f"{cell}: its predictions are of other images than the test split of {options.data}")
        found[cell.known, cell.method, cell.seed] = resampled_map(scores, table.values, drawn)
        print(f"{cell}: {found[cell.known, cell.method, cell.seed][0]:.2f}", flush=True)
    made = pd.DataFrame(claims(found, options.method))
    write_text(options.out, made.round(5).to_csv(index=False, lineterminator="\n"))
    print(made.to_string(index=False))
    return 0


def contenders(rows: pd.DataFrame) -> pd.DataFrame:
    variant = rows["method"].str.contains(VARIANT, regex=False)
    return rows[~variant & ~rows["method"].isin(NEVER_A_RIVAL)]


def draws(images: int, count: int) -> np.ndarray:
    """(1 + count, images): how often each image counts; in the first row once."""
    generator = np.random.default_rng(0)
    chances = np.full(images, 1 / images)
    return np.concatenate([np.ones((1, images)), generator.multinomial(images, chances, count)]).astype(np.float32)


def resampled_map(scores: np.ndarray, labels: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Scores and labels (n, C), counts (R, n) → mAP in percent (R,), over the categories present in each draw."""
    total, there = np.zeros(len(drawn)), np.zeros(len(drawn))
    for column, truth in zip(scores.T, labels.T, strict=True):
        order = np.argsort(-column, kind="stable")
        counts, right = drawn[:, order], truth[order] == 1
        known = truth[order] != 0
        seen = np.cumsum(counts * known, 1, dtype=np.float64)[:, right]
        hits = counts[:, right]
        precision = np.cumsum(hits, 1, dtype=np.float64) / np.maximum(seen, 1)
        present = hits.sum(1)
        total += np.where(present > 0, (precision * hits).sum(1) / np.maximum(present, 1), 0)
        there += present > 0
    return 100 * total / there


def claims(found: Scores, method: str) -> list[dict[str, Any]]:
    """`method` against each rival, over the seeds that both have: at each share, and on their average."""
    shares = sorted({known for known, _, _ in found})
    rivals = dict.fromkeys(name for _, name, _ in found if name != method)
    wanted = [(f"{known:g}", (known,)) for known in shares]
    wanted += [(AVERAGE, tuple(shares))] if len(shares) > 1 else []
    made: list[dict[str, Any]] = []
    for title, together in wanted:
        at = [row for rival in rivals for row in _against(found, method, rival, title, together)]
        adjusted = holm_adjusted([row["t_p"] for row in at])
        made += [row | {"t_p_holm": p} for row, p in zip(at, adjusted, strict=True)]
    return made


def _against(found: Scores, method: str, rival: str, title: str, shares: Iterable[float]) -> list[dict[str, Any]]:
    seeds = sorted({seed for _, _, seed in found})
    pairs = [
        np.mean([found[known, method, seed] - found[known, rival, seed] for known in shares], axis=0)
        for seed in seeds
        if all((known, name, seed) in found for known in shares for name in (method, rival))
    ]
    if len(pairs) < 2:
        return []
    differences = np.stack(pairs)  # (seeds, 1 + draws)
    by_seed, by_draw = differences[:, 0], differences[:, 1:].mean(0)
    low, high = np.quantile(by_draw, [0.025, 0.975])
    return [
        {
            "known": title,
            "method": method,
            "rival": rival,
            "seeds": len(pairs),
            "difference": float(by_seed.mean()),
            "smallest": float(by_seed.min()),
            "t_p": float(stats.ttest_1samp(by_seed, 0, alternative="greater").pvalue),
            "images_low": float(low),
            "images_high": float(high),
            "images_p": float((1 + (by_draw <= 0).sum()) / (1 + len(by_draw))),
        }
    ]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claim", description=__doc__.split("\n")[0])
    parser.add_argument("sweep")
    parser.add_argument("data")
    parser.add_argument("--method", default="hst")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--out", default="benchmarks/claim.csv")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(str(error))
