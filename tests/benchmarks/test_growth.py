"""Exponents of cost in the number of categories."""

import math

import numpy as np
import pytest

from benchmarks.growth import exponent, growth
from benchmarks.tables import summary
from tests.benchmarks.fabricate import row, rows, too_large

SIZES = (20, 80, 200, 1000)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, -0.5])
def test_exponent_of_a_power_is_found_again(power):
    sizes = np.array(SIZES, float)
    assert exponent(sizes, 3.7 * sizes**power) == pytest.approx(power, abs=1e-9)


def test_growth_is_fitted_for_each_module_and_contender_on_medians():
    measured = [
        row(module, contender, size, seconds=noise * 1e-3 * size**time, gigabytes=1e-3 * size**memory, round=turn)
        for module, contender, time, memory in (("intra", "ours", 1, 0.5), ("intra", "textbook", 2, 2))
        for size in SIZES
        for turn, noise in enumerate((0.5, 1.0, 9.0))
    ]
    found = growth(summary(rows(*measured))).set_index("contender")
    assert found.loc["ours", "time"] == pytest.approx(1)
    assert found.loc["ours", "memory"] == pytest.approx(0.5)
    assert found.loc["textbook", ["time", "memory"]].tolist() == pytest.approx([2, 2])


def test_what_does_not_fit_is_left_out_and_two_sizes_are_too_few():
    measured = [row("sd", "textbook", size, seconds=size**2.0) for size in SIZES[:3]]
    measured += [too_large(module="sd", contender="textbook", categories=1000)]
    measured += [row("sd", "ours", size) for size in SIZES[:2]]
    found = growth(summary(rows(*measured))).set_index("contender")
    assert found.loc["textbook", "time"] == pytest.approx(2)
    assert math.isnan(found.loc["ours", "time"])
