import dataclasses

import numpy as np
import pytest

from fewtags.completion.calibration import Entries
from fewtags.completion.filling import (
    Filling,
    Probabilities,
    decide,
    fill_without_promise,
    origins,
    probabilities,
)
from tests.completion.fabricate import question, world

RISK = 0.05


def test_decisions_follow_the_certified_thresholds():
    asked, _ = question(world(), 1)
    found = probabilities(asked)
    filling = decide(asked, found, 0.8, RISK)
    assert filling.count(1) > 0
    assert filling.count(-1) > 0
    for side, value, sign in (("present", 1, 1), ("absent", -1, -1)):
        cut = filling.thresholds[side][asked.fill.category]
        assert np.array_equal(filling.values == value, sign * (found.fill - cut) >= -1e-9)
        assert (sign * found.fill[filling.values == value] >= 0).all()
        assert sum(part.filled for part in filling.certificates[side]) == filling.count(value)


def test_the_seed_decides_the_folds_and_nothing_else_is_random():
    asked, _ = question(world(), 1)
    again = probabilities(asked)
    assert np.array_equal(probabilities(asked).fill, again.fill)
    other = dataclasses.replace(asked, seed=5)
    assert not np.array_equal(probabilities(other).fill, again.fill)
    assert np.corrcoef(probabilities(other).fill, again.fill)[0, 1] > 0.98


def test_nothing_held_out_fills_what_the_model_is_sure_of():
    asked, _ = question(world(), 1)
    nothing = Entries(*(np.zeros(0, int), *(np.zeros(0, np.float32) for _ in range(4))))
    asked = dataclasses.replace(asked, held=nothing, present=np.zeros(0, bool))
    found = probabilities(asked)
    assert found.fill == pytest.approx(asked.fill.logit)
    filling = fill_without_promise(asked, found)
    assert filling.precision is None
    assert np.array_equal(filling.values == 1, 1 / (1 + np.exp(-asked.fill.logit)) >= 0.95)
    assert (filling.values == -1).any()


def test_no_evidence_at_all_leaves_the_score():
    asked, _ = question(world(evidence=False), 1)
    found = probabilities(asked)
    assert not found.from_intra.any()
    assert not found.from_cross.any()
    filling = decide(asked, found, 0.8, RISK)
    origin = origins(filling, found.fill, found, asked.fill.category)
    assert set(origin) == {"model", "none"}
    assert np.array_equal(origin == "none", filling.values == 0)


def test_origin_is_the_least_without_which_it_would_be_left():
    logits = np.array([3.0, 3.0, 3.0, 3.0, 1.0, -3.0, -3.0, 4.0])
    intra = np.array([0.5, 1.5, 0.5, 0.9, 0.5, 0.5, -1.5, 1.2])
    cross = np.array([0.4, 0.0, 1.5, 0.9, 0.5, 0.0, 0.0, 1.7])
    found = Probabilities(np.zeros(0), logits, intra, cross)
    values = np.array([1, 1, 1, 1, 0, -1, -1, 1], np.int8)
    filling = Filling(0.9, values, {"present": np.array([2.0]), "absent": np.array([-2.0])}, {})
    origin = origins(filling, logits, found, np.zeros(8, int))
    assert origin.tolist() == ["model", "intra", "cross", "intra", "none", "model", "intra", "cross"]
    both = Filling(0.9, values[:1], {"present": np.array([2.9]), "absent": np.array([-2.9])}, {})
    near = Probabilities(np.zeros(0), logits[:1], intra[:1], cross[:1])
    assert origins(both, logits[:1], near, np.zeros(1, int)).tolist() == ["intra+cross"]
