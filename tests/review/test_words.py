from __future__ import annotations

import pytest

from fewtags.review.words import listed, question, reason, with_article


@pytest.mark.parametrize(
    ("category", "asked"),
    [
        ("keyboard", "Is there a keyboard here?"),
        ("apple", "Is there an apple here?"),
        ("umbrella", "Is there an umbrella here?"),
        ("unicycle", "Is there a unicycle here?"),
        ("scissors", "Are there scissors here?"),
        ("skis", "Are there skis here?"),
        ("wine glass", "Is there a wine glass here?"),
        ("bus", "Is there a bus here?"),
        ("snow", "Is there snow here?"),
        ("people", "Are there people here?"),
        ("traffic_light", "Is there a traffic light here?"),
    ],
)
def test_the_question(category: str, asked: str):
    assert question(category) == asked


def test_articles_and_lists():
    assert with_article("orange") == "an orange"
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c", "d"]) == "a, b and 2 more"


def found(**changes) -> dict:
    return {"score": 0.4, "intra": None, "intra_because": [], "cross": None, "cross_because": []} | changes


def test_what_decided_comes_first():
    known = [{"category": "keyboard", "p": 0.9}, {"category": "mouse", "p": 0.8}]
    alike = [{"image": "a", "similarity": 0.9}] * 3
    within = reason("monitor", "intra", found(intra=0.93, intra_because=known))
    assert within[0] == "Keyboard and mouse are known here: 0.93."
    across = reason("monitor", "cross", found(cross=0.7, cross_because=alike, intra=0.93, intra_because=known))
    assert across[0] == "It resembles 3 images known to show a monitor."
    assert across[1].startswith("Keyboard and mouse")
    assert reason("monitor", "model", found()) == ["Looking at the image alone, the classifier says 0.40."]
    assert "resembles" not in " ".join(reason("monitor", "none", found(cross=0.1, cross_because=alike)))
