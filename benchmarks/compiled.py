"""What `torch.compile` would bring: `python -m benchmarks.compiled`. It needs a C++ compiler.

The same weights, step and batch, compiled or not, in turns in one process; beside it what compiling itself takes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.record import Figure, alternating, record
from benchmarks.workload import AS_PRINTED, CHANNELS, TINY, make_batch, make_method, total
from fewtags.nn.backbones import build_backbone
from fewtags.nn.inference import fastest

RIVAL = "not compiled"
STEPS = 3


Pair = tuple[str, Callable[[], Tensor], Callable[[], Tensor]]
"""What it is, as it comes, compiled."""


def heads(categories: int, batch_size: int, tiny: bool = False, backend: str = "inductor") -> Pair:
    """One step of all heads, and the same with the tagger compiled (losses and thresholds look at labels)."""
    channels = 12 if tiny else CHANNELS
    batch = make_batch(batch_size, categories, 7, channels)
    contenders = []
    for compiles in (False, True):
        method = make_method(categories, channels, **(AS_PRINTED | (TINY if tiny else {})))
        if compiles:
            method.tagger.forward = torch.compile(method.tagger.forward, dynamic=False, backend=backend)  # type: ignore[method-assign]

        def step(method: nn.Module = method) -> Tensor:
            method.zero_grad(set_to_none=True)
            loss = total(method, batch)  # type: ignore[arg-type]
            loss.backward()
            return loss.detach()

        contenders.append(step)
    return f"all heads, C = {categories}, batch {batch_size}, a step", *contenders


def inference(name: str, side: int, batch_size: int, backend: str = "inductor") -> Pair:
    """The cache's network (channels last, batch norms folded), and the same compiled."""
    images = torch.randn(batch_size, 3, side, side).contiguous(memory_format=torch.channels_last)
    network = fastest(build_backbone(name, pretrained=False), images[:1])
    quick = torch.compile(network, dynamic=False, backend=backend)
    run = torch.inference_mode()
    return (
        f"{name} at {side}², batch {batch_size}, inference",
        run(lambda: network(images)),
        run(lambda: quick(images)),
    )


def compared(what: str, eager: Callable[[], Tensor], compiled: Callable[[], Tensor], rounds: int) -> list[Figure]:
    started = time.perf_counter()
    compiled()
    compiling = time.perf_counter() - started
    expected = eager()
    torch.testing.assert_close(compiled(), expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
    repeated = {name: _times(run, STEPS) for name, run in (("compiled", compiled), (RIVAL, eager))}
    seconds, _ = alternating(repeated, rounds)
    return [
        Figure("compiled", f"{what}, compiled", seconds["compiled"] / STEPS, seconds[RIVAL] / STEPS, RIVAL, "s"),
        Figure("compiled", f"{what}: compiling, once a process", compiling, None, "", "s"),
    ]


def _times(run: Callable[[], Tensor], count: int) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(count):
            run()

    return repeated


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    cases = [heads(80, 8), inference("lite0", 224, 16)]
    record([figure for case in cases for figure in compared(*case, rounds=options.rounds)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
