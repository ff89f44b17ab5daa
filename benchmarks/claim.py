"""Is one method ahead of every other? By seeds, and by test images: the claim of docs/protocol.md.

    python -m benchmarks.claim SWEEP data/coco-sample --out benchmarks/claim.csv

SWEEP is the folder of a `fewtags benchmark`. For each rival, at each known share and on their average: a paired
one-sided t over seeds, with Holm's correction over the rivals; and 1,000 draws of as many test images, with
replacement, the same for both methods and all seeds. The draws need the predictions that a sweep keeps with its
runs; what they give is kept (`--kept`), a few kilobytes a run, so that the runs may be deleted. Without either, a
cell counts over seeds alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks import command
from fewtags.benchmark.cells import Cell, short_name
from fewtags.benchmark.grid import UPPER_BOUND
from fewtags.benchmark.results import read_results
from fewtags.benchmark.statistics import holm_adjusted
from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.labels.table import LabelTable
from fewtags.training.folder import PREDICTIONS, RunFolder

DRAWS = 1000
AVERAGE = "average"
OURS = "hst"
"""Its variants, such as `hst.sa`, are no rivals; those of others are."""
NEVER_A_RIVAL = (UPPER_BOUND, "hst_fb")
"""One saw every label; the other is the method itself with an addition."""
Key = tuple[float, str, int]
"""known, method, seed"""
Scores = dict[Key, np.ndarray]
"""mAP in percent of the test images and of each draw of them, (1 + draws,); (1,) without predictions."""
SAME = 0.005
"""mAP of one run in two files, in percent, may differ by this much: they are rounded."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    rows = contenders(options.sweep, options.data)
    if options.known is not None:
        rows = rows[rows["known"].isin(options.known)]
    table = open_data(options.data).table.split("test")
    drawn = draws(len(table.values), options.draws)
    kept = read_kept(options.kept)
    found: Scores = {}
    for row in rows.itertuples():
        cell = Cell(row.data, options.data, str(row.method), float(row.known), int(row.seed))
        name = f"{cell.known:g} {cell.method} {cell.seed} {row.recipe_hash}"
        predicted = _predicted(Path(options.sweep) / "runs" / cell.folder, cell, table)
        if predicted is not None and name not in kept:
            kept[name] = resampled_map(predicted, table.values, drawn).astype(np.float32)
        scores = kept.get(name, np.array([row.mAP]))
        if abs(scores[0] - row.mAP) > SAME:
            raise UserError(f"{cell}: its predictions give {scores[0]:.3f} mAP, its row says {row.mAP:.3f}")
        found[cell.known, cell.method, cell.seed] = scores
    np.savez_compressed(options.kept, **kept)
    made = pd.DataFrame(claims(found, options.method))
    write_text(options.out, made.round(5).to_csv(index=False, lineterminator="\n"))
    print(made.to_string(index=False))
    return 0


def read_kept(file: str | Path) -> dict[str, np.ndarray]:
    """ "known method seed recipe" → (1 + draws,)."""
    if not Path(file).is_file():
        return {}
    with np.load(file) as arrays:
        return dict(arrays)


def _predicted(run: Path, cell: Cell, table: LabelTable) -> np.ndarray | None:
    """A run's scores (n, C) of the test images, if they are there."""
    if not (run / PREDICTIONS).is_file():
        return None
    images, scores = RunFolder(run).predictions()
    if images != list(table.images):
        raise UserError(f"{cell}: its predictions are of other images than the test split")
    return scores


def contenders(sweep: str | Path, data: str) -> pd.DataFrame:
    """Rows of a sweep on this data: `hst` and its rivals."""
    rows = read_results(sweep)
    rows = rows[rows["data"] == short_name(data)]
    if rows.empty:
        raise UserError(
            f"{sweep}: no row of {short_name(data)} there; give the folder of a `fewtags benchmark` of it"
        )
    base = rows["method"].str.partition(".")[0]
    variant_of_ours = (base == OURS) & (rows["method"] != OURS)
    return rows[~variant_of_ours & ~base.isin(NEVER_A_RIVAL)]


def draws(images: int, count: int) -> np.ndarray:
    """(1 + count, images): how often each image counts; in the first row once."""
    generator = np.random.default_rng(0)
    chances = np.full(images, 1 / images)
    return np.concatenate([np.ones((1, images)), generator.multinomial(images, chances, count)]).astype(np.float32)


def resampled_map(scores: np.ndarray, labels: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Scores and labels (n, C), counts (R, n) → mAP in percent (R,), over the categories present in each draw."""
    total, there = np.zeros(len(drawn)), np.zeros(len(drawn))
    by_image = np.ascontiguousarray(drawn.T)  # so that images are put in order row by row
    for column, truth in zip(scores.T, labels.T, strict=True):
        known = np.flatnonzero(truth)
        order = known[np.argsort(-column[known], kind="stable")]
        counts, right = by_image[order], truth[order] == 1
        seen = np.cumsum(counts, 0)[right]  # whole numbers, far below what 32 bits count exactly
        hits = counts[right]
        precision = np.cumsum(hits, 0, dtype=np.float64) / np.maximum(seen, 1)
        present = hits.sum(0)
        total += np.where(present > 0, (precision * hits).sum(0) / np.maximum(present, 1), 0)
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
        [(found[known, method, seed], found[known, rival, seed]) for known in shares]
        for seed in seeds
        if all((known, name, seed) in found for known in shares for name in (method, rival))
    ]
    if len(pairs) < 2:
        return []
    by_seed = np.array([np.mean([ours[0] - theirs[0] for ours, theirs in pair]) for pair in pairs])
    row: dict[str, Any] = {
        "known": title,
        "method": method,
        "rival": rival,
        "seeds": len(pairs),
        "difference": float(by_seed.mean()),
        "smallest": float(by_seed.min()),
        "t_p": float(stats.ttest_1samp(by_seed, 0, alternative="greater").pvalue),
    }
    return [row | _over_images(pairs)]


def _over_images(pairs: list[list[tuple[np.ndarray, np.ndarray]]]) -> dict[str, Any]:
    """Seeds of (ours, theirs) at each share → interval and p over draws, by the seeds that have draws."""
    drawn = [pair for pair in pairs if all(len(scores) > 1 for both in pair for scores in both)]
    if not drawn:
        return {"drawn_seeds": 0, "images_low": np.nan, "images_high": np.nan, "images_p": np.nan}
    by_draw = np.mean([[(ours - theirs)[1:] for ours, theirs in pair] for pair in drawn], axis=(0, 1))
    low, high = np.quantile(by_draw, [0.025, 0.975])
    p = float((1 + (by_draw <= 0).sum()) / (1 + len(by_draw)))
    return {"drawn_seeds": len(drawn), "images_low": float(low), "images_high": float(high), "images_p": p}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claim", description=__doc__.split("\n")[0])
    parser.add_argument("sweep")
    parser.add_argument("data")
    parser.add_argument("--method", default=OURS)
    parser.add_argument("--known", type=float, nargs="+", help="at these shares alone, and on their average")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--kept", default="benchmarks/claim_draws.npz")
    parser.add_argument("--out", default="benchmarks/claim.csv")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    command.run(main)
