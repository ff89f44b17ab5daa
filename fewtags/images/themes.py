"""What the embedded set shows: its 40 categories, the scenes they occur in, and what else lies about.

A scene states the probability of each category; given the scene, categories are independent. So the
statistics of the whole set can be beaten by looking at the image: beside a cup a mouse is unlikely, but on a
workstation it is nearly certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

Size = Literal["large", "medium", "small"]
Colour = Literal["any", "natural", "skin"]


@dataclass(frozen=True)
class Category:
    """How a category looks: one of several glyphs, at a size, somewhere in a band of the image's height."""

    glyphs: str
    size: Size
    colour: Colour = "natural"
    """any: every hue; natural: a little off; skin: the yellow of people becomes a skin tone."""
    band: tuple[float, float] = (0.35, 0.95)
    """Lowest and highest centre, as a share of the image's height from the top."""
    crowd: float = 0.25
    """Probability of one more instance, again and again."""


CATEGORIES: dict[str, Category] = {
    "person": Category("🧍🚶🏃💃🕺🧑👩👨👧👦👴👵👷👮🙋🧘", "large", "skin", (0.3, 0.85), 0.45),
    "bicycle": Category("🚲", "medium", "any"),
    "car": Category("🚗🚙🚕🚘🚖🏎🚓", "large", "any", crowd=0.45),
    "bus": Category("🚌🚍🚎", "large", "any", (0.3, 0.8)),
    "truck": Category("🚚🚛🛻", "large", "any", (0.3, 0.85)),
    "traffic light": Category("🚦🚥", "small", band=(0.1, 0.6), crowd=0.35),
    "stop sign": Category("🛑", "medium", band=(0.1, 0.6), crowd=0.05),
    "boat": Category("⛵🚤🛥🛶🚢", "medium", "any", (0.25, 0.75), 0.35),
    "bird": Category("🐦🕊🦆🦉🦜🦢🐧🐓🐤", "small", band=(0.08, 0.8), crowd=0.4),
    "cat": Category("🐈🐱", "medium"),
    "dog": Category("🐕🐶🐩🦮", "medium"),
    "horse": Category("🐎🐴", "large", band=(0.3, 0.85)),
    "sheep": Category("🐑🐏", "medium", crowd=0.55),
    "cow": Category("🐄🐮🐂", "large", crowd=0.45),
    "backpack": Category("🎒", "small", "any", crowd=0.1),
    "umbrella": Category("☂☔🌂⛱", "medium", "any", (0.2, 0.8)),
    "sports ball": Category("⚽🏀🏐🏈⚾🎾🥎", "small", crowd=0.1),
    "kite": Category("🪁", "small", "any", (0.06, 0.5)),
    "bottle": Category("🍾🍼🧴", "small", "any"),
    "wine glass": Category("🍷🍸🍹🥂", "small", "any", crowd=0.4),
    "cup": Category("☕🍵🥤🥛", "small", "any", crowd=0.3),
    "fork": Category("⑂", "small", crowd=0.3),
    "knife": Category("🔪ⵏ", "small", crowd=0.2),
    "spoon": Category("🥄", "small"),
    "bowl": Category("🍜🍲🍚🥗", "medium", "any"),
    "banana": Category("🍌", "small"),
    "apple": Category("🍎🍏", "small", crowd=0.45),
    "cake": Category("🎂🍰🧁", "medium"),
    "chair": Category("🪑💺", "medium", "any", crowd=0.45),
    "couch": Category("🛋", "large", "any", (0.4, 0.9), 0.1),
    "potted plant": Category("🪴", "medium", band=(0.2, 0.9)),
    "tv": Category("📺🖥", "large", band=(0.15, 0.7), crowd=0.1),
    "laptop": Category("💻", "medium", crowd=0.15),
    "mouse": Category("🖱", "small", crowd=0.02),
    "keyboard": Category("⌨", "medium", crowd=0.05),
    "cell phone": Category("📱", "small", crowd=0.1),
    "book": Category("📕📗📘📙📖📚", "small", "any", crowd=0.5),
    "clock": Category("⏰🕰🕒🕙🕓🕛", "small", band=(0.08, 0.6), crowd=0.05),
    "scissors": Category("✂", "small", "any", crowd=0.05),
    "teddy bear": Category("🧸", "medium", crowd=0.2),
}
NAMES = tuple(CATEGORIES)

# No category, but often like one: pear for apple, goat for sheep, printer for keyboard, compass for clock.
CLUTTER: dict[str, str] = {
    "street": "🏢🏠🏭🏪🌳🚏🚧⛽🛴🛵🏍🛺🚋⛔🚫⚠🛢💼🧳🛍🗑",
    "kitchen": "🫙🧃🏺🫖🍳🧈🧀🥧🍞🥕🌽🍐🍅🍑🍊🍋🥢🧅🥔🥚🥐🧻",
    "desk": "📎📏📐🖊✏🖍📌📋🗒🗂📰🖨📟🔋☎🧮🖲💡🎧🔑🗞",
    "farm": "🌾🪵🚜🐖🐐🦙🌳🪨🍂🪣🐇🌻🐺🪜🧺",
    "beach": "🌴🐚🦀🐠⭐🪨☁👒🕶🧺🪂🎈🏝🐢",
    "living room": "🖼🪟🚪🪞🛏💡🕯📻🎸🎁🪆🎮🧦🧹🏮🌵🎹🧺",
    "park": "🌳🌲🍄🌷🌻🪨🪵🍂🦊🐿🛴🎈🌱🥏🐢🪂",
}


@dataclass(frozen=True)
class Scene:
    """A kind of picture: how often it is drawn, what it stands on, and P(category | scene)."""

    theme: str
    share: float
    background: Literal["outdoors", "road", "water", "room", "table"]
    objects: dict[str, float]


SCENES: dict[str, Scene] = {
    "crossing": Scene("street", 9, "road", {
        "person": 0.8, "car": 0.9, "traffic light": 0.88, "bus": 0.35, "truck": 0.2, "bicycle": 0.25,
        "umbrella": 0.08, "backpack": 0.25, "cell phone": 0.12, "dog": 0.05, "stop sign": 0.03}),
    "rain": Scene("street", 5, "road", {
        "umbrella": 0.92, "person": 0.9, "car": 0.45, "bus": 0.35, "backpack": 0.35,
        "traffic light": 0.15, "clock": 0.12, "dog": 0.05}),
    "side road": Scene("street", 6, "road", {
        "car": 0.8, "stop sign": 0.75, "truck": 0.45, "bicycle": 0.3, "person": 0.35, "dog": 0.25,
        "cat": 0.15, "bird": 0.15}),
    "bike lane": Scene("street", 4, "road", {
        "bicycle": 0.95, "person": 0.8, "backpack": 0.55, "car": 0.25, "traffic light": 0.3,
        "bus": 0.1, "bird": 0.12}),
    "laid table": Scene("kitchen", 8, "table", {
        "fork": 0.93, "knife": 0.9, "spoon": 0.45, "wine glass": 0.6, "bottle": 0.45, "chair": 0.5,
        "person": 0.35, "cup": 0.3, "bowl": 0.2, "cake": 0.1, "potted plant": 0.06}),
    "breakfast": Scene("kitchen", 6, "table", {
        "cup": 0.92, "bowl": 0.8, "spoon": 0.85, "banana": 0.4, "apple": 0.2, "knife": 0.15,
        "person": 0.3, "cell phone": 0.2, "book": 0.1, "clock": 0.12}),
    "party": Scene("kitchen", 4, "room", {
        "cake": 0.92, "wine glass": 0.72, "bottle": 0.65, "person": 0.7, "fork": 0.4, "knife": 0.35,
        "chair": 0.2, "teddy bear": 0.15, "cup": 0.15}),
    "worktop": Scene("kitchen", 4, "table", {
        "knife": 0.75, "apple": 0.6, "banana": 0.55, "bowl": 0.55, "bottle": 0.35, "spoon": 0.2,
        "cup": 0.2, "potted plant": 0.12}),
    "workstation": Scene("desk", 7, "table", {
        "keyboard": 0.95, "mouse": 0.92, "tv": 0.85, "cup": 0.4, "chair": 0.3, "clock": 0.25,
        "cell phone": 0.25, "book": 0.2, "person": 0.2, "potted plant": 0.15, "scissors": 0.1}),
    "café": Scene("desk", 5, "table", {
        "laptop": 0.95, "cup": 0.8, "cell phone": 0.7, "person": 0.6, "backpack": 0.4, "cake": 0.25,
        "mouse": 0.45, "book": 0.15}),
    "school": Scene("desk", 5, "room", {
        "book": 0.92, "backpack": 0.6, "person": 0.5, "scissors": 0.45, "clock": 0.4, "chair": 0.4,
        "laptop": 0.25, "apple": 0.2}),
    "pasture": Scene("farm", 6, "outdoors", {
        "cow": 0.8, "sheep": 0.6, "dog": 0.35, "bird": 0.25, "person": 0.2, "horse": 0.15, "truck": 0.1}),
    "stable": Scene("farm", 5, "outdoors", {
        "horse": 0.92, "person": 0.6, "truck": 0.4, "dog": 0.35, "cat": 0.3, "bird": 0.25, "apple": 0.2,
        "cow": 0.1}),
    "beach": Scene("beach", 6, "water", {
        "person": 0.85, "umbrella": 0.75, "sports ball": 0.5, "boat": 0.35, "bird": 0.35,
        "kite": 0.25, "bottle": 0.2, "book": 0.15, "dog": 0.15}),
    "harbour": Scene("beach", 5, "water", {
        "boat": 0.95, "bird": 0.75, "person": 0.45, "truck": 0.12, "bicycle": 0.12, "cat": 0.12,
        "dog": 0.08}),
    "sofa": Scene("living room", 7, "room", {
        "couch": 0.93, "tv": 0.7, "potted plant": 0.5, "cat": 0.4, "book": 0.3, "person": 0.4,
        "clock": 0.25, "cup": 0.25, "dog": 0.2, "cell phone": 0.15, "laptop": 0.1,
        "teddy bear": 0.08}),
    "nursery": Scene("living room", 3, "room", {
        "teddy bear": 0.92, "book": 0.6, "sports ball": 0.45, "bottle": 0.45, "clock": 0.35,
        "chair": 0.35, "person": 0.4, "cat": 0.1}),
    "reading corner": Scene("living room", 4, "room", {
        "chair": 0.88, "book": 0.8, "potted plant": 0.75, "cat": 0.5, "cup": 0.4, "clock": 0.25,
        "person": 0.25}),
    "dog walk": Scene("park", 5, "outdoors", {
        "dog": 0.9, "person": 0.85, "sports ball": 0.55, "bird": 0.3, "bicycle": 0.3,
        "backpack": 0.15}),
    "kites": Scene("park", 3, "outdoors", {
        "kite": 0.93, "person": 0.85, "backpack": 0.3, "dog": 0.2, "bird": 0.2, "bicycle": 0.15}),
    "picnic": Scene("park", 3, "outdoors", {
        "person": 0.8, "bottle": 0.65, "apple": 0.6, "banana": 0.45, "cake": 0.35, "knife": 0.3,
        "cup": 0.3, "dog": 0.25, "sports ball": 0.2}),
}  # fmt: skip


@lru_cache
def scene_shares() -> np.ndarray:
    """(scenes,) probabilities of the scenes."""
    shares = np.array([scene.share for scene in SCENES.values()], dtype=float)
    return shares / shares.sum()


def scene_rates() -> np.ndarray:
    """(scenes, categories): P(category | scene)."""
    return np.array([[scene.objects.get(name, 0.0) for name in NAMES] for scene in SCENES.values()])


def marginal_rates() -> np.ndarray:
    """(categories,): P(category) = Σ_scene P(scene) P(category | scene), the same at every correlation."""
    return scene_shares() @ scene_rates()


@lru_cache
def mixed_rates(correlation: float) -> np.ndarray:
    """(scenes, categories): correlation · P(category | scene) + (1 - correlation) · P(category)."""
    return correlation * scene_rates() + (1 - correlation) * marginal_rates()
