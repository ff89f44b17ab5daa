"""Ready-made sweeps: the paper's whole evidence, and what a laptop does in an hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from fewtags.benchmark.cells import Block, parse_known, parse_methods, parse_seeds
from fewtags.errors import UserError
from fewtags.methods import METHODS
from fewtags.methods.variants import VARIANTS

T = TypeVar("T")

PROPORTIONS = tuple(round(0.1 * step, 1) for step in range(1, 10))
SEEDS = (0, 1, 2)
AT_PROTOTYPE_COUNTS = (0.2, 0.5, 0.8)
AT_DEPARTURES = (0.1, 0.5)
QUICK_METHODS = (
    *("plain", "assume_absent", "plain_pl", "asl", "partial_bce", "gcn_ml"),
    *("ssgrl", "sst", "hst", "full_labels"),
)
QUICK_PROPORTIONS = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Suite:
    recipe: str
    """The recipe it runs unless another is given."""
    blocks: tuple[Block, ...]


def suite(name: str) -> Suite:
    if name == "paper":
        return Suite("default", _paper())
    if name == "quick":
        return Suite("quick", (Block(QUICK_METHODS, QUICK_PROPORTIONS, SEEDS),))
    raise UserError(f"--suite {name}: it is paper or quick")


def _paper() -> tuple[Block, ...]:
    """Every table and figure of the paper, then what each choice of ours is worth."""
    apart = (*_group("departure"), *_group("threshold_intra"), *_group("threshold_cross"))
    return (
        Block(tuple(METHODS), PROPORTIONS, SEEDS),
        Block(_group("ablation"), PROPORTIONS, SEEDS),
        Block(_group("threshold"), PROPORTIONS, SEEDS),
        Block(_group("prototypes"), AT_PROTOTYPE_COUNTS, SEEDS),
        Block(apart, AT_DEPARTURES, SEEDS),
    )


def _group(name: str) -> tuple[str, ...]:
    return tuple(method for method, variant in VARIANTS.items() if variant.group == name)


def chosen(
    suite_name: str | None, methods: str | None, known: str | None, seeds: str | None
) -> tuple[tuple[Block, ...], str]:
    """What the command line asks for: (blocks, the recipe to run unless another is given)."""
    wanted = (
        None if methods is None else parse_methods(methods),
        None if known is None else parse_known(known),
        None if seeds is None else parse_seeds(seeds),
    )
    if suite_name is None:
        return plain_grid(*wanted), "default"
    ready_made = suite(suite_name)
    return narrowed(ready_made.blocks, *wanted), ready_made.recipe


def plain_grid(
    methods: Sequence[str] | None, known: Sequence[float] | None, seeds: Sequence[int] | None
) -> tuple[Block, ...]:
    """A sweep without a suite: what is given, and for the rest every method, three proportions and three seeds."""
    return (Block(tuple(methods or METHODS), tuple(known or QUICK_PROPORTIONS), tuple(seeds or SEEDS)),)


def narrowed(
    blocks: Sequence[Block],
    methods: Sequence[str] | None,
    known: Sequence[float] | None,
    seeds: Sequence[int] | None,
) -> tuple[Block, ...]:
    """The cells of a suite that have one of these methods, proportions and seeds."""
    _check_offered("--methods", methods, [name for block in blocks for name in block.methods])
    _check_offered("--known", known, [share for block in blocks for share in block.known])
    _check_offered("--seeds", seeds, [seed for block in blocks for seed in block.seeds])
    kept = [
        Block(_among(block.methods, methods), _among(block.known, known), _among(block.seeds, seeds))
        for block in blocks
    ]
    left = tuple(block for block in kept if block.methods and block.known and block.seeds)
    if not left:
        raise UserError("nothing of the suite is left: it does not have these methods at these shares")
    return left


def _among(offered: tuple[T, ...], wanted: Sequence[T] | None) -> tuple[T, ...]:
    return tuple(value for value in offered if wanted is None or value in wanted)


def _check_offered(flag: str, wanted: Sequence[object] | None, offered: Sequence[object]) -> None:
    for value in wanted or ():
        if value not in offered:
            listed = ", ".join(map(str, dict.fromkeys(offered)))
            raise UserError(f"{flag} {value}: the suite has none; it has {listed}. Leave --suite out to run it")
