"""Named variants of `hst`: the paper's ablations, and each choice of ours undone on its own.

`--method hst.intra_only` trains one. Besides, METHOD.FIELD.VALUE is any method with one setting changed, for
instance `asl.shortcut_lr.0.0003`: a sweep then tells what the setting is worth.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from fewtags.errors import UserError
from fewtags.methods import METHODS
from fewtags.methods.base import Method
from fewtags.recipe import Recipe

FIXED_THRESHOLDS = tuple(round(0.1 * step, 1) for step in range(1, 10))
PROTOTYPE_COUNTS = (1, 2, 5, 10, 20)

SCALE = frozenset(
    {
        "method",
        "holdout",
        "backbone",
        "freeze_backbone",
        "image_size",
        "feature_size",
        "joint_size",
        "backbone_lr",
        "head_lr",
        "shortcut_lr",
    }
)
"""Settings in which the recipes differ because of the data, the machine or the size of the network."""

DECIDED_BY_CELL = frozenset({"method", "known", "seed"})
"""Settings of a run that no variant changes: a sweep is made of them."""

WITHOUT_OWN: Mapping[str, Any] = {"own_share": 0.0, "plain_beside": False, "discriminant_share": 0.0}
"""The paper's modules are taken apart without what ours adds to them."""

NOTHING_FILLED: Mapping[str, Any] = {"intra": False, "cross": False, "own_share": 0.0, "plausible_share": 0.0}
"""What is left learns from known labels alone: the difference to `hst` is what filled labels bring."""


@dataclass(frozen=True)
class Variant:
    group: str
    """The table it belongs to: ablation, prototypes, threshold, threshold_intra, threshold_cross, departure, or
    setting: one of any method's."""
    summary: str
    settings: Mapping[str, Any]


def _ablations() -> dict[str, Variant]:
    intra: dict[str, Any] = {"cross": False, **WITHOUT_OWN}
    cross: dict[str, Any] = {"intra": False, **WITHOUT_OWN}
    made: dict[str, tuple[str, dict[str, Any]]] = {
        "intra_only": ("transfer within an image alone", intra),
        "intra_statistical": (
            "the label graph in place of the pair head",
            intra | {"intra_source": "statistical"},
        ),
        "intra_no_loss": (
            "the pair head learns from the threshold's loss alone",
            intra | {"intra_weight": 0.0, "dtl_gradient": "through"},
        ),
        "cross_only": ("transfer across images alone", cross),
        "cross_instance": (
            "the newest known instances in place of prototypes",
            cross | {"cross_source": "instances"},
        ),
        "cross_no_loss": ("prototypes without the contrastive loss", cross | {"cross_weight": 0.0}),
        "sa": ("category features by activation maps, without words", {"category_features": "sa"}),
    }
    return {f"hst.{name}": Variant("ablation", *rest) for name, rest in made.items()}


def _prototype_counts() -> dict[str, Variant]:
    return {
        f"hst.cross_only.k{count}": Variant(
            "prototypes",
            f"across images alone, K = {count}",
            {"intra": False, **WITHOUT_OWN, "prototypes": count},
        )
        for count in PROTOTYPE_COUNTS
    }


def _fixed_thresholds() -> dict[str, Variant]:
    modules = {
        "threshold": "both modules",
        "threshold_intra": "the module within an image",
        "threshold_cross": "the module across images",
    }
    return {
        f"hst.{field}.{value}": Variant(
            field, f"a fixed threshold of {value} for {modules[field]}", {field: value}
        )
        for field in modules
        for value in FIXED_THRESHOLDS
    }


def departures(recipe: str) -> dict[str, Any]:
    """Where the method of a shipped recipe (`paper`, `released`) is not that of `default`: field → its value."""
    ours, theirs = Recipe().model_dump(), Recipe.load(recipe).model_dump()
    return {field: theirs[field] for field in ours if field not in SCALE and theirs[field] != ours[field]}


def _departures() -> dict[str, Variant]:
    made: dict[str, tuple[str, Any, list[str]]] = {}
    for recipe in ("paper", "released"):
        for field, value in departures(recipe).items():
            made.setdefault(f"hst.{field}.{_word(value)}", (field, value, []))[2].append(recipe)
    single = {
        name: Variant("departure", f"{field}: {_word(value)}, as {' and '.join(recipes)}", {field: value})
        for name, (field, value, recipes) in made.items()
    }
    whole = {
        f"hst.{recipe}": Variant("departure", f"all choices of {recipe} together", departures(recipe))
        for recipe in ("paper", "released")
    }
    bare = Variant("departure", "the paper's two modules, without own labels and discriminants", WITHOUT_OWN)
    nothing = Variant("departure", "the same network and discriminants, and nothing is filled", NOTHING_FILLED)
    return single | whole | {"hst.transfer_only": bare, "hst.known_only": nothing}


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else yaml.safe_dump(value).removesuffix("...\n").strip()


VARIANTS: dict[str, Variant] = _ablations() | _prototype_counts() | _fixed_thresholds() | _departures()


def variant(name: str) -> Variant | None:
    """What a name stands for: a named variant, or METHOD.FIELD.VALUE. None: neither."""
    if name in VARIANTS:
        return VARIANTS[name]
    method, _, change = name.partition(".")
    field, _, value = change.partition(".")
    if method not in METHODS or not value or field not in Recipe.model_fields or field in DECIDED_BY_CELL:
        return None
    try:
        changed = getattr(Recipe().override([f"{field}={value}"]), field)
    except UserError as problem:
        raise UserError(f"method {name}: {str(problem).removeprefix('--set: ')}") from problem
    return Variant("setting", f"{method} with {field}: {value}", {field: changed})


def summary(name: str) -> str:
    """What a variant is, in words; nothing for a method."""
    found = variant(name)
    return "" if found is None else found.summary


def method_class(name: str) -> type[Method]:
    """The class that a method's or a variant's name stands for."""
    if name in METHODS:
        return METHODS[name]
    if variant(name) is not None:
        return METHODS[name.partition(".")[0]]
    close = difflib.get_close_matches(name, [*METHODS, *VARIANTS], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"choose one of {', '.join(METHODS)}"
    raise UserError(f"there is no method {name!r}; {hint}")


def definition(name: str) -> dict[str, Any]:
    """The settings that a method or variant is: they win over the recipe's."""
    changed = variant(name)
    return {**method_class(name).settings, **({} if changed is None else changed.settings)}
