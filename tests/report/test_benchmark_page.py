import re
from itertools import pairwise

import pandas as pd
import pytest

from fewtags.errors import UserError
from fewtags.report.benchmark_axes import COLOURS, looks
from fewtags.report.benchmark_page import benchmark_report, commands
from fewtags.report.benchmark_rows import _limits
from fewtags.report.benchmark_words import among, headline, sentences
from fewtags.report.labels import spread
from tests.benchmark import fabricate
from tests.report.test_page import read


def report(folder, results):
    folder.mkdir(exist_ok=True, parents=True)
    results.to_csv(folder / "results.csv", index=False)
    return read(benchmark_report(folder))


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return report(tmp_path_factory.mktemp("sweep"), fabricate.everything())


def test_a_whole_sweep_shows_every_section(everything):
    text = everything.said()
    assert "hst is ahead of 13 of 14 methods and is behind hst_fb." in text
    for heading in (
        *("Scores", "Who is ahead: paired tests", "Beside the paper", "HST taken apart"),
        *("Fixed and learned thresholds", "What each departure is worth", "Labels filled in"),
        *("What quality costs", "In other settings", "How it was made", "What is missing"),
        "Where the paper contradicts itself",
    ):
        assert heading in text
    assert "44.1 ± 0.4" in text
    assert "Nothing: every method has every seed at every share that another one has." in text
    assert "not fully independent" in text
    assert "only the order is" in text


def test_charts_are_labelled_and_follow_the_theme(everything):
    drawn = [svg for svg in everything.all("svg") if svg.get("role") == "img"]
    assert len(drawn) == 2 + 1 + 1 + 1 + 1 + 2 + 1
    assert all(svg["aria-label"] for svg in drawn)
    used = {style for element in everything.elements if (style := element[1].get("style"))}
    assert any("var(--run0)" in style for style in used)
    assert not any(re.search(r"#0.a1b.", style) for style in used)


def test_the_page_needs_nothing_from_outside(everything):
    assert everything.all("link") == everything.all("script") == everything.all("img") == []
    addresses = [value for _, attributes in everything.elements for value in attributes.values() if value]
    assert not any(value.startswith("http") for value in addresses if "w3.org" not in value)
    assert {attributes["xlink:href"][0] for attributes in everything.all("use")} <= {"#"}


def test_ids_are_unique(everything):
    ids = [attributes["id"] for _, attributes in everything.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_a_part_of_a_sweep_says_what_is_missing(tmp_path):
    results = fabricate.results(("plain", "partial_bce", "ssgrl", "hst"), (0.1,))
    page = report(tmp_path, results[~((results["method"] == "hst") & (results["seed"] == 2))])
    text = page.said()
    assert "Not decidable yet: hst shares 2 blocks with other methods, and 9 are needed." in text
    assert "1 cell of the sweep is missing; see the end." in text
    assert "10 %: seed 2" in text
    assert "(2 of 3)" in text
    assert len(page.all("wbr")) >= text.count(" (2 of 3)")  # there a cell of a wide table may break
    assert "p, Holm" not in text
    assert "HST taken apart" not in text


def test_one_method_and_one_seed(tmp_path):
    text = report(tmp_path, fabricate.results(("sst",), (0.1,), (0,))).said()
    assert "sst has been run; there is nothing to compare it with yet." in text
    assert "One seed: no spread can be given." in text


def test_the_upper_bound_alone(tmp_path):
    text = report(tmp_path, fabricate.results(("full_labels",), (0.1,), (0,))).said()
    assert "No method has been run yet." in text
    assert "57.8" in text


def test_no_rows_at_all(tmp_path):
    page = report(tmp_path, fabricate.results(()))
    assert "No method has been run yet." in page.said()
    assert "Nothing to show yet" in page.said()
    assert page.all("svg") == []


def test_several_data_sets_are_told_apart(tmp_path):
    parts = [fabricate.results(("plain", "hst"), (0.1, 0.5), data=data) for data in ("voc2007", "holiday")]
    text = report(tmp_path, pd.concat(parts)).said()
    assert "mAP, voc2007: 4,000 training images" in text
    assert "mAP, holiday: 4,000 training images" in text
    assert "hst is ahead of plain." in text


def test_rows_without_figures_are_no_figures(tmp_path):
    text = report(tmp_path, fabricate.results(("plain", "hst"), (0.1, 0.5)).assign(mAP=None)).said()
    assert "nan" not in text.lower()


def test_names_are_escaped(tmp_path):
    results = fabricate.results(("plain", "hst"), (0.1,)).assign(data="<b>x</b>")
    assert "<b>x</b>" in report(tmp_path, results).said()


def test_no_results(tmp_path):
    with pytest.raises(UserError, match=r"no results.csv in it; run `fewtags benchmark` with --out"):
        benchmark_report(tmp_path)


def test_results_that_cannot_be_read(tmp_path):
    (tmp_path / "results.csv").write_text("")
    with pytest.raises(UserError, match=r"results.csv: not readable as a table of results"):
        benchmark_report(tmp_path)


def test_results_without_a_column(tmp_path):
    (tmp_path / "results.csv").write_text("data,method,seed\nx,hst,0\n")
    with pytest.raises(UserError, match=r"results.csv: no column 'known'"):
        benchmark_report(tmp_path)


def test_headline_when_nothing_is_shown():
    results = fabricate.results(("plain", "hst"), (0.1, 0.5, 0.9))
    level = results.assign(mAP=[50 + (-1) ** place * (0.1 + 0.01 * place) for place in range(len(results))])
    assert headline(level) == "No difference is shown between hst and plain."


def test_the_best_speaks_where_there_is_no_hst():
    results = fabricate.results(("plain", "ssgrl"), (0.1, 0.5, 0.9))
    assert headline(results) == "ssgrl is ahead of plain."
    assert sentences(results)[0].startswith(
        "coco-sample: the highest mAP on average over 10, 50, 90 % known: ssgrl"
    )


def test_a_method_with_fewer_seeds_is_neither_called_level_nor_ranked():
    results = fabricate.results(("plain", "ssgrl", "hst"), (0.1, 0.5, 0.9))
    begun = pd.concat([results, fabricate.results(("hst_fb",), (0.1, 0.5, 0.9), seeds=(0,)).assign(mAP=99.0)])
    assert headline(begun) == "hst is ahead of plain and ssgrl; hst_fb: not decidable yet."
    assert "hst_fb" not in sentences(begun)[0]
    assert sentences(begun)[0].startswith("coco-sample: the highest mAP on average over 10, 50, 90 % known: hst ")


def test_methods_that_are_many_are_counted():
    assert among(["a", "b"], 9) == "a and b"
    assert among(list("abcdef"), 9) == "6 of 9 methods"
    assert among(list("abcdef"), 6) == "all 6 other methods"


def test_commands_name_what_was_run():
    results = fabricate.results(("plain", "hst", "full_labels"), (0.1, 0.5))
    more = fabricate.results(("hst.sa",), (0.1,))
    from fewtags.benchmark.grid import main_settings

    (setting,) = main_settings(pd.concat([results, more]))
    assert commands(setting) == [
        "fewtags benchmark DATA --methods plain,hst,full_labels --known 0.1,0.5 --seeds 0,1,2 --out DIR",
        "fewtags benchmark DATA --methods hst.sa --known 0.1 --seeds 0,1,2 --out DIR",
    ]


def test_eight_methods_have_a_colour_and_hst_is_one_of_them():
    methods = [*"abcdefghij", "hst"]
    look = looks(methods)
    coloured = [method for method in methods if look[method].named]
    assert len(coloured) == len(COLOURS) == 8
    assert look["hst"].colour == "run0"
    assert (
        len({look[method].colour for method in coloured}) == len({look[method].mark for method in coloured}) == 8
    )


def test_labels_are_moved_apart_and_keep_their_order():
    moved = spread([5.0, 1.0, 1.1, 1.2], 1.0)
    assert moved == pytest.approx([5.0, 0.1, 1.1, 2.1])
    assert spread([], 1.0) == []
    crowded = sorted(spread([0.0] * 6 + [0.5], 1.0))
    assert all(upper - lower >= 1 - 1e-9 for lower, upper in pairwise(crowded))


def test_one_difference_far_from_all_others_does_not_flatten_them():
    low, high = _limits([0.5, 0.6, -0.4, 0.7, 11.7])
    assert high < 4
    assert low < -0.4
    assert _limits([0.0])[0] < 0 < _limits([0.0])[1]
