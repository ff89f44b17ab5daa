"""Cells of a sweep, and how they are written on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fewtags.benchmark.cells import Block, cells, parse_known, parse_methods, parse_seeds, short_name
from fewtags.errors import UserError


def test_every_combination_is_one_cell_and_a_block_of_rivals_comes_together():
    made = cells(["scenes"], [Block(("plain", "hst"), (0.5, 0.1), (0, 1))])
    assert [(cell.known, cell.seed, cell.method) for cell in made] == [
        *((0.5, 0, "plain"), (0.5, 0, "hst"), (0.5, 1, "plain"), (0.5, 1, "hst")),
        *((0.1, 0, "plain"), (0.1, 0, "hst"), (0.1, 1, "plain"), (0.1, 1, "hst")),
    ]


def test_a_cell_in_two_blocks_runs_once():
    block = Block(("plain",), (0.5,), (0,))
    assert len(cells(["scenes"], [block, block])) == 1


def test_full_labels_runs_once_per_seed():
    made = cells(["scenes"], [Block(("full_labels",), (0.1, 0.5, 0.9), (0, 1))])
    assert [(cell.known, cell.seed) for cell in made] == [(1.0, 0), (1.0, 1)]


def test_short_names_hold_no_path(tmp_path: Path):
    assert short_name(f"voc2007:{tmp_path}") == "voc2007"
    assert short_name(f"vg200:{tmp_path}") == "vg200"
    assert short_name("scenes") == "scenes"
    assert short_name("scenes:train=100,correlation=0.5") == "scenes-train100-correlation0.5"
    assert short_name(str(tmp_path / "photos") + "/") == "photos"
    assert short_name(str(tmp_path / "photos" / "..")) == tmp_path.name
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    assert short_name(str(tmp_path / "link")) == "link"


def test_two_data_of_one_name_are_refused(tmp_path: Path):
    block = Block(("plain",), (0.5,), (0,))
    with pytest.raises(UserError, match="both called 'photos'"):
        cells([str(tmp_path / "photos"), str(tmp_path / "other" / "photos")], [block])
    with pytest.raises(UserError, match="no data"):
        cells([], [block])


def test_folders_of_cells_differ_and_are_plain_names():
    made = cells(["scenes"], [Block(("hst", "hst.threshold.0.1"), (0.1, 0.15), (0, 1))])
    assert len({cell.folder for cell in made}) == len(made) == 8
    assert all("/" not in cell.folder and " " not in cell.folder for cell in made)


def test_lists_are_parsed():
    assert parse_methods("plain, hst.intra_only,plain") == ("plain", "hst.intra_only")
    assert parse_known("0.1,1") == (0.1, 1.0)
    assert parse_seeds("0, 7") == (0, 7)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_methods, "hts", "there is no method 'hts'; did you mean hst"),
        (parse_methods, "hst.intra_onyl", "hst.intra_only"),
        (parse_methods, " , ", "--methods: nothing is given"),
        (parse_known, "0.1,1.5", "--known 1.5: a share of the labels lies above 0 and is at most 1"),
        (parse_known, "0", "--known 0: a share"),
        (parse_known, "half", "--known half: not a number"),
        (parse_seeds, "0,1.5", "--seeds 1.5: not a whole number"),
        (parse_seeds, "-1", "--seeds -1: a seed is 0 or more"),
        (parse_seeds, "", "--seeds: nothing is given"),
    ],
)
def test_mistakes_are_named(parse, text: str, message: str):
    with pytest.raises(UserError) as caught:
        parse(text)
    assert message in str(caught.value)
