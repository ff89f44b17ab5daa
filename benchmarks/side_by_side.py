"""Inference of hst and of the bare backbone, in turns in one process: `python -m benchmarks.side_by_side`.

`bench` gives each its own process, which is right for memory; the speed of the machine then differs between them
by more than the heads cost. Here both see the same seconds.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.cases import Case, Scale
from benchmarks.record import Figure, alternating, record
from benchmarks.targets import TARGETS
from benchmarks.whole import inference, network
from fewtags.nn.inference import fastest

RIVAL = "the bare backbone"
BOUNDS = {target.categories: target.bound for target in TARGETS if target.module == "predict"}


def figure(categories: int, batch: int, side: int, rounds: int, scale: Scale = "paper") -> Figure:
    """Images to probabilities, one backbone for both."""
    module, given = network(Case("predict", "ours", categories, batch, side, scale=scale))
    bare, _ = network(Case("predict", "bare", categories, batch, side, scale=scale))
    assert module.backbone is not None
    backbone = fastest(module.backbone, given.inputs[:1])
    methods = {"ours": module.method, RIVAL: bare.method}
    contenders = {name: inference(method, backbone, given.inputs) for name, method in methods.items()}
    alternating(contenders, 1)  # the first pass is slow
    seconds, _ = alternating(contenders, rounds)
    what = f"inference, C = {categories}, batch {batch}, map {side}×{side}"
    target = BOUNDS.get(categories)
    return Figure("side_by_side", what, seconds["ours"], seconds[RIVAL], RIVAL, "s", target, of_ratio=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    record([figure(categories, 4, side, options.rounds) for categories in (80, 200) for side in (7, 14)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
