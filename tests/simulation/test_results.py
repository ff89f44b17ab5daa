from __future__ import annotations

from pathlib import Path

from fewtags.simulation.page import simulation_page
from fewtags.simulation.results import headline, reached
from tests.simulation.fabricate import made_up


def test_sentences_are_means_over_the_seeds():
    end = reached(made_up(), "random")
    assert (end.start, end.mAP, end.full, end.seeds) == (45, 55, 60, 2)
    assert end.answers_per_present == 5
    text = headline([end]).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert text.startswith("20 % of the labels asked, 92 % of full-label mAP reached (order random: 45.0 mAP at")
    unfinished = made_up().drop(index=5)  # the second seed has no second round yet
    assert reached(unfinished, "random").mAP == 50


def test_without_test_labels_there_is_still_a_page(tmp_path: Path):
    settings = {"data": "x", "images": 3, "categories": 2, "start": 0.1, "answers_per_round": 50}
    page = simulation_page(tmp_path, made_up((0,), None), settings | {"recipe": {"method": "plain"}}).read_text()
    assert "no test label is known" in page
    assert page.count('role="img"') == 2
