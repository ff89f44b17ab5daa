"""What the ready-made sweeps hold."""

from __future__ import annotations

import pytest

from fewtags.benchmark.cells import Block, cells
from fewtags.benchmark.suites import PROPORTIONS, chosen, narrowed, suite
from fewtags.errors import UserError
from fewtags.methods import METHODS
from fewtags.methods.variants import VARIANTS
from fewtags.recipe import Recipe


def count(group: str) -> int:
    return sum(variant.group == group for variant in VARIANTS.values())


def test_the_papers_proportions():
    assert PROPORTIONS == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def test_the_paper_suite_has_every_method_and_variant():
    made = cells(["scenes"], suite("paper").blocks)
    assert {cell.method for cell in made} == {*METHODS, *VARIANTS}
    few = count("departure") + count("threshold_intra") + count("threshold_cross")
    everywhere = len(METHODS) - 1 + count("ablation") + count("threshold")
    assert len(made) == 3 * (9 * everywhere + 1 + 3 * count("prototypes") + 2 * few)
    assert (count("ablation"), count("threshold"), count("prototypes")) == (7, 9, 5)
    prototypes = {cell.known for cell in made if ".cross_only.k" in cell.method}
    assert prototypes == {0.2, 0.5, 0.8}
    assert {cell.known for cell in made if cell.method == "hst.evidence.sum"} == {0.1, 0.5}
    assert {cell.known for cell in made if cell.method == "hst.threshold.0.4"} == set(PROPORTIONS)
    assert {cell.seed for cell in made} == {0, 1, 2}


def test_the_quick_suite_can_be_decided():
    quick = suite("quick")
    made = cells(["scenes"], quick.blocks)
    assert len(made) == 9 * 9 + 3
    assert (
        len({(cell.known, cell.seed) for cell in made if cell.method == "hst"}) == 9
    )  # blocks of the paired test
    assert Recipe.load(quick.recipe).limit == 2000


def test_a_suite_is_narrowed_down():
    blocks, recipe = chosen("paper", "hst,hst.cross_only.k5,full_labels", "0.2,0.5", "1")
    assert recipe == "default"
    assert {(cell.method, cell.known, cell.seed) for cell in cells(["scenes"], blocks)} == {
        *(("hst", 0.2, 1), ("hst", 0.5, 1), ("full_labels", 1.0, 1)),
        *(("hst.cross_only.k5", 0.2, 1), ("hst.cross_only.k5", 0.5, 1)),
    }


def test_without_a_suite_what_is_given_is_run():
    blocks, recipe = chosen(None, "plain", "0.25", None)
    assert blocks == (Block(("plain",), (0.25,), (0, 1, 2)),)
    assert recipe == "default"
    assert chosen(None, None, None, "4")[0] == (Block(tuple(METHODS), (0.1, 0.5, 0.9), (4,)),)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("quick", "kggr", None, None), "--methods kggr: the suite has none"),
        (("quick", None, "0.25", None), "--known 0.25: the suite has none; it has 0.1, 0.5, 0.9"),
        (("quick", None, None, "9"), "--seeds 9: the suite has none; it has 0, 1, 2"),
        (("all", None, None, None), "--suite all: it is paper or quick"),
        (("paper", "hst.cross_only.k1", "0.1", None), "nothing of the suite is left"),
    ],
)
def test_what_a_suite_does_not_have_is_an_error(asked, message: str):
    with pytest.raises(UserError) as caught:
        chosen(*asked)
    assert message in str(caught.value)


def test_narrowing_drops_empty_blocks():
    blocks = (Block(("plain",), (0.1,), (0,)), Block(("hst",), (0.5,), (0,)))
    assert narrowed(blocks, None, [0.5], None) == (blocks[1],)
