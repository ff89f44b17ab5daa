"""Rows of a sweep and the settings they were made with: what counts as another recipe."""

from __future__ import annotations

import pytest
import torch

from fewtags.benchmark.recipes import differences
from fewtags.methods import METHODS
from fewtags.methods.base import OF_HST_ALONE
from fewtags.recipe import Recipe
from tests.methods.test_methods import LATE, batch_of, make

OTHER = {
    "own_share": 0.7,
    "plain_beside": False,
    "discriminant_share": 0.1,
    "discriminant_classes": False,
    "plausible_share": 0.5,
    "cross_evidence": "features",
}


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.not_read])
def test_a_setting_that_a_method_does_not_read_changes_nothing_of_it(name: str):
    assert set(OTHER) == OF_HST_ALONE
    methods = [make(name, freeze_backbone=True, **settings) for settings in ({}, OTHER)]
    terms = []
    for method in methods:
        method.before_training(lambda: [batch_of()])
        torch.manual_seed(0)  # sarb draws what it blends
        terms.append(method.losses(method(batch_of().inputs), batch_of(), LATE).terms)
    assert all(torch.equal(value, terms[1][key]) for key, value in terms[0].items())
    weights = [method.state_dict() for method in methods]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())


def test_only_settings_that_a_method_reads_make_another_recipe():
    for name in METHODS:
        before = Recipe(method=name)
        found = differences(before, before.replace(own_share=0.7, epochs=7))
        own = [f"own_share: {before.own_share} → 0.7"] if not METHODS[name].not_read else []
        assert sorted(found) == sorted([*own, "epochs: 20 → 7"])
