"""Variants: what each changes, that each departure of the default recipe has one, and single settings."""

from __future__ import annotations

import pytest
import torch

import fewtags
from fewtags.errors import UserError
from fewtags.methods import METHODS
from fewtags.methods.hst import Hst
from fewtags.methods.variants import SCALE, VARIANTS, definition, departures, method_class
from fewtags.predict import load
from fewtags.recipe import Recipe
from tests.conftest import TINY


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_hst_with_valid_settings_that_differ_from_the_default(name):
    assert method_class(name) is Hst
    ours, changed = Recipe().model_dump(), Recipe().replace(**definition(name)).model_dump()
    different = {field for field in ours if ours[field] != changed[field]}
    same_as_default = name == "hst.cross_only.k10"  # K = 10 is the default; here it stands beside the others
    assert different == set(VARIANTS[name].settings) - ({"prototypes"} if same_as_default else set())
    assert len(VARIANTS[name].summary) > 10


@pytest.mark.parametrize("recipe", ["paper", "released"])
def test_each_departure_has_a_variant_of_its_own(recipe):
    ours, theirs = Recipe().model_dump(), Recipe.load(recipe).model_dump()
    differing = {field for field in ours if ours[field] != theirs[field]} - SCALE
    alone = [variant.settings for variant in VARIANTS.values() if variant.group == "departure"]
    for field in differing:
        assert {field: theirs[field]} in alone
    assert VARIANTS[f"hst.{recipe}"].settings == departures(recipe) == {f: theirs[f] for f in differing}


def test_the_papers_ablations_switch_the_other_module_off():
    for name, variant in VARIANTS.items():
        if name.startswith("hst.intra_") and variant.group == "ablation":
            assert variant.settings["cross"] is False
        if name.startswith("hst.cross_") and variant.group in ("ablation", "prototypes"):
            assert variant.settings["intra"] is False
    no_loss = VARIANTS["hst.intra_no_loss"].settings
    assert no_loss["intra_weight"] == 0
    assert no_loss["dtl_gradient"] == "through"


def test_a_variant_trains_and_loads_by_its_name(colours, tmp_path):
    settings = {**TINY, "epochs": 2}
    run = fewtags.train(colours, out=tmp_path / "run", method="hst.cross_instance", known=0.5, **settings)
    tagger = load(run)
    assert tagger.recipe.method == "hst.cross_instance"
    assert tagger.recipe.cross_source == "instances"
    assert tagger.method.intra is None
    assert torch.isfinite(tagger.method(torch.randn(1, tagger.labels.channels, 2, 2))["logits"]).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hst.intra_onyl", r"there is no method 'hst.intra_onyl'; did you mean hst.intra_only"),
        ("asl.shortcut_rate.1", r"there is no method 'asl.shortcut_rate.1'"),
        ("asl.shortcut_lr", r"there is no method 'asl.shortcut_lr'"),
        ("asl.seed.3", r"there is no method 'asl.seed.3'"),
        ("asl.epochs.many", r"method asl.epochs.many: epochs='many': input should be a valid integer"),
        ("qqqq", r"there is no method 'qqqq'; choose one of plain, "),
    ],
)
def test_an_unknown_name_is_refused_with_a_hint(name, message):
    with pytest.raises(UserError, match=message):
        method_class(name)


def test_any_method_with_one_setting_changed(colours, tmp_path):
    assert definition("asl.shortcut_lr.1e-4")["shortcut_lr"] == 1e-4
    assert definition("asl.shortcut_lr.0.0003") == METHODS["asl"].settings | {"shortcut_lr": 0.0003}
    assert method_class("gcn_ml.dropout.0") is METHODS["gcn_ml"]
    run = fewtags.train(colours, out=tmp_path / "run", method="plain.batch_size.8", known=0.5, **TINY)
    tagger = load(run)
    assert (tagger.recipe.method, tagger.recipe.batch_size) == ("plain.batch_size.8", 8)
