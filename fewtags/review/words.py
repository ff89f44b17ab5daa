"""The question and the reason, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fewtags.completion.suggestions import ABSENT, PRESENT

UNCOUNTED = re.compile(
    "(?:"
    "bread|butter|cheese|clothing|coffee|equipment|fire|fog|food|footwear|fruit|furniture|grass|hair"
    "|ice|jewelry|luggage|meat|milk|money|mud|music|paper|rain|rice|sand|seafood|sky|smoke|snow|soap"
    "|soil|steam|sunlight|tennis|traffic|water|wine|wood"
    ")"
)
PLURAL = re.compile(r"people|(?!tennis|canvas|gas|lens|iris|atlas|christmas).*[^su]s", re.IGNORECASE)
"""skis and scissors, but not glass, bus or tennis."""
VOWEL = re.compile(r"^(?!uni|use|eu|one\b)[aeiou]", re.IGNORECASE)


def question(category: str) -> str:
    """ "Is there a keyboard here?", "Are there scissors here?", "Is there snow here?" """
    name = spoken(category)
    last = name.split()[-1].lower() if name else ""
    if PLURAL.fullmatch(last):
        return f"Are there {name} here?"
    return f"Is there {with_article(name)} here?"


def with_article(name: str) -> str:
    last = name.split()[-1].lower() if name else ""
    if UNCOUNTED.fullmatch(last) or PLURAL.fullmatch(last):
        return name
    return f"{'an' if VOWEL.match(name) else 'a'} {name}"


def spoken(category: str) -> str:
    return category.replace("_", " ").strip() or category


def suggestion(decision: str) -> str:
    """What fewtags would do with it."""
    if decision == PRESENT:
        return "fewtags would fill in: present"
    if decision == ABSENT:
        return "fewtags would fill in: absent"
    return "fewtags leaves this one to you"


def reason(category: str, origin: str, reasons: dict[str, Any]) -> list[str]:
    """Sentences, what decided it first."""
    within = _within(reasons.get("intra"), reasons["intra_because"])
    across = _across(category, reasons["cross_because"]) if "cross" in origin else None
    own = f"Looking at the image alone, the classifier says {reasons['score']:.2f}."
    if origin == "cross":
        ordered = [across, within, own]
    else:
        ordered = [within, across, own] if "intra" in origin else [own, within]
    return [sentence[0].upper() + sentence[1:] for sentence in ordered if sentence]


def _within(likelihood: float | None, known: Sequence[dict[str, Any]]) -> str | None:
    if likelihood is None or not known:
        return None
    names = [spoken(because["category"]) for because in known]
    are = "is" if len(names) == 1 else "are"
    return f"{listed(names)} {are} known here: {likelihood:.2f}."


def _across(category: str, alike: Sequence[dict[str, Any]]) -> str | None:
    if not alike:
        return None
    images = "an image" if len(alike) == 1 else f"{len(alike)} images"
    return f"It resembles {images} known to show {with_article(spoken(category))}."


def listed(names: Sequence[str], most: int = 3) -> str:
    """ "keyboard", "keyboard and mouse", "keyboard, mouse and 2 more" """
    shown = list(names[:most])
    if len(names) > most:
        shown = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}"
