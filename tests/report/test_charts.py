import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd

from fewtags.report.charts import filled_chart, matrix_chart, precision_chart, sparkline, thresholds_chart
from fewtags.report.palette import DARK, LIGHT, STAND_INS, themed

LINE = pd.Series([1.0, 0.7, 0.6], index=[1, 2, 3])
COUNTS = pd.Series([0, 100, 200], index=[1, 2, 3])
NONE = pd.Series(dtype=float)


def all_charts():
    return {
        "thresholds": thresholds_chart({"intra": LINE, "cross": NONE}, warmup=1),
        "precision": precision_chart({"intra": LINE, "cross": LINE - 0.01}),
        "filled": filled_chart("intra", COUNTS, COUNTS // 2, 200),
        "unjudged": filled_chart("cross", COUNTS, NONE, 200),
        "spark": sparkline(LINE),
        "matrix": matrix_chart("IST <1>", [[0, 0.5], [None, 1]], ["a & b", "a very long category name"]),
    }


def test_every_chart_is_labelled_valid_svg_in_the_pages_colours_and_font():
    for name, svg in all_charts().items():
        root = ElementTree.fromstring(str(svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
        assert root.get("role") == "img", name
        assert root.get("aria-label"), name
        assert "var(--" in svg, name
        assert "font-family" not in svg, name
        assert not any(colour in svg for colour in STAND_INS.values()), name
        assert "#000000" not in svg, name  # black would vanish on a dark page


def test_ids_of_charts_on_one_page_differ():
    found = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in all_charts().values()]
    assert sum(map(len, found)) == len(set.union(*found))


def test_references_within_a_chart_resolve():
    for svg in all_charts().values():
        wanted = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
        assert wanted <= set(re.findall(r'\bid="([^"]+)"', svg))


def test_lines_are_named_with_their_last_value():
    svg = precision_chart({"intra": LINE, "cross": LINE - 0.01})
    assert "intra 0.60" in svg
    assert "cross 0.59" in svg


def test_wrong_labels_are_hatched_and_unjudged_ones_are_not():
    charts = all_charts()
    assert "<pattern" in charts["filled"]
    assert "<pattern" not in charts["unjudged"]


def test_both_themes_have_every_colour_and_stand_ins_are_distinct():
    assert LIGHT.keys() == DARK.keys() == STAND_INS.keys()
    assert len(set(STAND_INS.values())) == len(STAND_INS)
    assert themed(f"fill: {STAND_INS['ink']}") == "fill: var(--ink)"


def contrast(colour, ground):
    """The contrast ratio of WCAG 2."""

    def luminance(value):
        parts = np.array([int(value[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ np.array([0.2126, 0.7152, 0.0722])

    high, low = sorted([luminance(colour), luminance(ground)], reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_and_marks_stand_out_from_the_page_in_both_themes():
    for theme in (LIGHT, DARK):
        assert contrast(theme["ink"], theme["paper"]) > 7
        assert contrast(theme["muted"], theme["paper"]) > 4.5
        for name in theme.keys() - {"paper", "line"}:
            assert contrast(theme[name], theme["paper"]) > 2.7, name


def test_three_lines_that_end_together_are_named_apart():
    svg = precision_chart({"intra": LINE, "cross": LINE - 0.01, "own": LINE - 0.02})
    heights = [float(y) for y in re.findall(r'<text [^>]*y="([-\d.]+)"[^>]*>(?:intra|cross|own) ', svg)]
    assert len(heights) == 3
    assert min(abs(a - b) for a, b in itertools.combinations(heights, 2)) > 10
