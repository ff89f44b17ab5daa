"""Recipes are values, and name no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import fewtags
from fewtags import plain_yaml
from fewtags.errors import UserError
from fewtags.nn import words
from fewtags.recipe import Recipe
from tests.conftest import TINY
from tests.untrusted.trap import TRAP, with_settings

YAML_ATTACKS = {
    "object": f"method: !!python/object/apply:os.system ['touch {TRAP}']",
    "name": "method: !!python/name:os.system",
    "module": "method: !!python/module:os",
    "new": f"method: !!python/object/new:subprocess.Popen [['touch', '{TRAP}']]",
    "own tag": "method: !Recipe {a: 1}",
    "aliases": "a: &a [x, x]\n"
    + "\n".join(f"{b}: &{b} [*{a}, *{a}]" for a, b in zip("abcdefghi", "bcdefghij", strict=True)),
    "nesting": "method: " + "[" * 1_500,
    "huge": "method: " + "x" * 2_000_000,
    "a list": "- 1\n- 2",
    "number keys": "1: 2\n3: 4",
    "a date that is none": "method: 2020-99-99",
    "bytes": "seed: !!binary AAAA",
    "not text": "\x00\x01",
}


@pytest.mark.parametrize("attack", YAML_ATTACKS)
def test_recipes_are_values(run: Path, attack: str):
    (run / "recipe.yaml").write_text(YAML_ATTACKS[attack])
    with pytest.raises(UserError, match=r"recipe\.yaml") as problem:
        fewtags.load(run)
    assert len(str(problem.value)) < 5000


def test_set_takes_values_only():
    with pytest.raises(UserError, match="--set"):
        Recipe().override([f"method=!!python/object/apply:os.system ['touch {TRAP}']"])


def test_plain_yaml_reads_what_safe_yaml_reads():
    text = Recipe().to_yaml()
    assert plain_yaml.parse(text, "here") == yaml.safe_load(text)


NAMES_OF_CODE = {
    "method": ["os.system", "fewtags.cli:main", "../../evil", "__import__('os')"],
    "backbone": [
        "hf-hub:evil/model",
        "hf_hub:evil/model",
        "local-dir:/tmp/evil",
        "os.system",
        "timm.models:x",
        "https://x/y",
    ],
}


@pytest.mark.parametrize(
    ("field", "name"), [(field, name) for field, names in NAMES_OF_CODE.items() for name in names]
)
def test_a_recipe_cannot_name_code(run: Path, field: str, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("socket.socket.connect", refuse_network)
    with_settings(run, **{field: name})
    with pytest.raises(UserError, match=r"does not have|cannot be built"):
        fewtags.load(run)


def refuse_network(*_: object) -> None:
    raise AssertionError("it went to the network")


def test_a_text_encoder_never_brings_its_own_code(monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, Any]] = []

    class Auto:
        @staticmethod
        def from_pretrained(name: str, **options: Any) -> None:
            asked.append(options)
            if len(asked) == 2:
                raise ValueError("this repository contains custom code")

    fake = type("transformers", (), {"AutoTokenizer": Auto, "AutoModel": Auto})
    monkeypatch.setitem(__import__("sys").modules, "transformers", fake)
    with pytest.raises(UserError, match="custom code"):
        words.load_words("hub:evil/encoder", ["dog"])
    assert asked == [{"trust_remote_code": False}] * 2


def test_tiny_settings_are_what_the_attacks_change(run: Path):
    """So that the attacks above fail for their own reason."""
    fewtags.load(run)
    assert yaml.safe_load((run / "recipe.yaml").read_text())["feature_size"] == TINY["feature_size"]
