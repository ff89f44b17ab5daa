from __future__ import annotations

import re

import pytest

from fewtags.errors import UserError
from fewtags.simulation.wanted import Wanted, parse_orders


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": 0.0}, "--start 0: a share of the labels, above 0 and below 1"),
        ({"start": 1.5}, "--start 1.5: a share"),
        ({"rounds": 0}, "--rounds 0: at least one"),
        ({"answers_per_round": 0}, "--answers-per-round 0: it lies above 0"),
        ({"answers_per_round": 2.5}, "--answers-per-round 2.5: a share below 1, or a whole number"),
    ],
)
def test_what_is_asked_for_is_checked(settings: dict, message: str):
    with pytest.raises(UserError, match=re.escape(message)):
        Wanted(**settings)


def test_answers_per_round_is_a_share_or_a_number():
    assert Wanted(answers_per_round=0.05).answers(1000) == 50
    assert Wanted(answers_per_round=70).answers(1000) == 70
    assert Wanted(answers_per_round=0.0001).answers(100) == 1
    assert parse_orders("random, value,random") == ("random", "value")
