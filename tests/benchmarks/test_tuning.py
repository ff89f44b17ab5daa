"""Every method gets the same configurations, and what was run is not run again."""

from __future__ import annotations

import pytest

from benchmarks import evidence, tuning
from benchmarks.tuning import ITS_OWN, configurations, read
from fewtags.errors import UserError
from fewtags.methods import METHODS
from fewtags.recipe import Recipe
from tests.conftest import TINY


def test_every_method_has_as_many_configurations_around_its_own_rate():
    for method in METHODS:
        tried = configurations(Recipe(method=method))
        assert len(tried) == 5 + (method in ITS_OWN)
        rate = "head_lr" if METHODS[method].uses_map else "shortcut_lr"
        assert tried["as it is"] == {}
        assert tried["a third of the rate"][rate] == pytest.approx(getattr(Recipe(), rate) / 3)
        assert tried["three times the rate"][rate] == pytest.approx(3 * getattr(Recipe(), rate))
        for setting, value in ITS_OWN.get(method, {}).items():
            assert getattr(Recipe(method=method), setting) != value
            assert setting not in METHODS[method].not_read
        assert tried["half the epochs"] == {"epochs": Recipe().epochs // 2}


def test_it_scores_on_the_development_split_and_goes_on_where_it_stopped(colours, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEWTAGS_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "tuning.csv"
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(Recipe(**(TINY | {"known": 0.5, "epochs": 1})).to_yaml())
    options = [str(colours), "--recipe", str(recipe), "--development", "12", "--out", str(out)]
    assert tuning.main([*options, "--methods", "plain"]) == 0
    rows = read(out)
    assert rows["method"].tolist() == ["plain"] * 5
    assert rows["settings"].tolist()[0] == ""
    assert rows["mAP"].between(0, 100).all()
    capsys.readouterr()
    assert tuning.main([*options, "--methods", "plain", "asl"]) == 0
    assert capsys.readouterr().out.count("\n") == 5  # those of asl alone
    rows = read(out)
    assert len(rows) == 10
    plain, asl = evidence.tuning(rows).rows
    assert [plain[0].text, asl[0].text] == ["plain", "asl"]
    tried = rows["mAP"].tolist()[:5]
    assert [cell.text for cell in plain[1:]] == [f"{mAP:.1f}" for mAP in tried]
    assert [cell.best for cell in plain[1:]] == [mAP == max(tried) for mAP in tried]
    with pytest.raises(UserError, match="there is no method 'hts'"):
        tuning.main([*options, "--methods", "hts"])


def test_single_settings_are_tried_beside_the_recipe_as_it_is(colours, tmp_path, monkeypatch):
    monkeypatch.setenv("FEWTAGS_CACHE", str(tmp_path / "cache"))
    out, recipe = tmp_path / "settings.csv", tmp_path / "recipe.yaml"
    recipe.write_text(Recipe(**(TINY | {"known": 0.5, "epochs": 2, "warmup_share": 0.0})).to_yaml())
    options = [str(colours), "--recipe", str(recipe), "--development", "12", "--out", str(out), "--methods", "hst"]
    assert tuning.main([*options, "--changes", "own_share=0", "pair_loss=bce intra_weight=1"]) == 0
    rows = read(out)
    assert rows["configuration"].tolist() == ["as it is", "own_share=0", "pair_loss=bce intra_weight=1"]
    assert rows["settings"].tolist() == ["", "own_share=0", "pair_loss=bce intra_weight=1"]
    table = evidence.changes(rows)
    assert [line[0].text for line in table.rows] == rows["configuration"].tolist()
    assert table.rows[0][3].text == "0.00"
    difference = rows["mAP"][2] - rows["mAP"][0]
    assert float(table.rows[2][3].text.replace("−", "-")) == pytest.approx(difference, abs=0.006)
    right, made = (float(rows[f"cross_{name}"][0]) for name in ("right", "made"))
    assert table.rows[0][7].text == f"{made:,.0f}"
    assert table.rows[0][6].text == (f"{100 * right / made:.1f} %" if made else "–")
