"""One set of colours for the page, the charts and the picture: Okabe and Ito's, told apart by colour-blind eyes.

A chart is drawn once and shown on light and dark pages: it is drawn in stand-in colours, each of which the page
replaces by a CSS variable. Meaning never rests on colour alone: right and wrong also differ in sign and hatching.
"""

from __future__ import annotations

LIGHT = {
    "ink": "#1c1d20",
    "muted": "#6a6d74",
    "line": "#dedcd6",
    "paper": "#ffffff",
    "run0": "#0072b2",
    "run1": "#8a8d93",
    "run2": "#d98200",
    "run3": "#b5609a",
    "run4": "#3a9fd6",
    "run5": "#6b5b2e",
    "intra": "#00805d",
    "cross": "#7a5bc4",
    "own": "#2b7bba",
    "wrong": "#d55e00",
}
DARK = {
    "ink": "#ebe9e4",
    "muted": "#9b9ea6",
    "line": "#34373d",
    "paper": "#1d1f23",
    "run0": "#4fb0ea",
    "run1": "#a3a6ad",
    "run2": "#f0ab3c",
    "run3": "#dd94c4",
    "run4": "#8fd0f5",
    "run5": "#c9b678",
    "intra": "#2fbf95",
    "cross": "#ab93ea",
    "own": "#6db4ea",
    "wrong": "#f5854a",
}
MODULES = {
    "intra": "evidence within the image",
    "cross": "evidence across images",
    "own": "its own score",
}
"""Where filled labels come from."""
RUN_COLOURS = 6

STAND_INS = {name: f"#0{index:x}a1b{index:x}" for index, name in enumerate(LIGHT)}
"""Colours no chart would use by chance; see `themed`."""


def themed(svg: str) -> str:
    """The same drawing with each stand-in colour replaced by its CSS variable."""
    for name, colour in STAND_INS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def run_colour(index: int) -> str:
    """The name of a run's colour, by its place in the report: the first is the one the report is about."""
    return f"run{index % RUN_COLOURS}"


def css_variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
