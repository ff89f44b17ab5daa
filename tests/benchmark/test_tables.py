import pandas as pd
import pytest

from fewtags.benchmark import grid
from fewtags.benchmark.ablation_tables import variants_of
from fewtags.benchmark.comparison_tables import against, agreements, side_by_side, with_places
from fewtags.benchmark.cost_tables import costs
from fewtags.benchmark.filled_tables import filled, reach
from fewtags.benchmark.table import Cell, Table, said_once, without_empty_columns
from fewtags.benchmark.tables import TABLES
from tests.benchmark import fabricate


@pytest.fixture(scope="module")
def everything():
    return fabricate.everything()


def without(results, method, known, *seeds):
    """The results of a sweep that has not come to these cells yet."""
    cells = (results["method"] == method) & (results["known"] == known)
    return results[~(cells & results["seed"].isin(seeds))] if seeds else results[~cells]


def table(name, results, place=0):
    return list(TABLES[name](results))[place]


def text(table, first, column):
    """The cell in the row that begins so."""
    (row,) = [row for row in table.rows if row[0].text == first]
    return row[table.columns.index(column)].text


def mean_and_spread(results, method, known, metric="mAP"):
    values = [v for m, k, v in results[["method", "known", metric]].values if m == method and k == known]
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{mean:.1f} ± {spread:.1f}"


def test_main_tables_are_means_over_seeds():
    results = fabricate.results(known=(0.1, 0.5))
    for place, metric in enumerate(("mAP", "OF1", "CF1")):
        shown = table("main", results, place)
        assert shown.title.startswith(f"{metric}, coco-sample: 4,000 training images, 8 epochs, lite0")
        for method in fabricate.LEVELS:
            assert text(shown, method, "10 %") == mean_and_spread(results, method, 0.1, metric)
            assert text(shown, method, "50 %") == mean_and_spread(results, method, 0.5, metric)


def test_the_average_is_each_seeds_mean_over_the_shares():
    results = fabricate.results(("plain", "hst"), (0.1, 0.5))
    own = results[results["method"] == "hst"]
    per_seed = [own[own["seed"] == seed]["mAP"].mean() for seed in (0, 1, 2)]
    mean = sum(per_seed) / 3
    spread = (sum((value - mean) ** 2 for value in per_seed) / 2) ** 0.5
    assert text(table("main", results), "hst", "average") == f"{mean:.1f} ± {spread:.1f}"


def test_the_average_is_over_shares_that_all_methods_have():
    results = without(fabricate.results(("plain", "hst"), (0.1, 0.5, 0.9)), "hst", 0.9)
    shown = table("main", results)
    assert shown.columns == ("method", "10 %", "50 %", "90 %", "average of 10, 50 %")
    assert text(shown, "hst", "90 %") == "–"
    assert "The average is over 10, 50 % known, where all of these methods have rows." in shown.notes
    values = results[(results["method"] == "plain") & (results["known"] < 0.9)]["mAP"]
    assert text(shown, "plain", "average of 10, 50 %").startswith(f"{values.mean():.1f}")


def test_no_average_when_no_two_shares_are_shared():
    one = without(fabricate.results(("plain", "hst"), (0.1, 0.5)), "hst", 0.5)
    assert table("main", one).columns == ("method", "10 %", "50 %")
    assert "No average: only 10 % known has all of these methods so far." in table("main", one).notes
    none = without(one, "plain", 0.1)
    assert "No average: no known share has all of these methods yet." in table("main", none).notes


def test_a_seed_that_is_missing_is_said():
    results = without(fabricate.results(("plain", "hst"), (0.1, 0.5)), "hst", 0.1, 2)
    shown = table("main", results)
    assert text(shown, "hst", "10 %").endswith(" (2 of 3)")
    assert text(shown, "hst", "average").endswith(" (2 of 3)")
    assert "of 3" not in text(shown, "plain", "10 %")
    assert any("only so many of the 3 seeds are done" in note for note in shown.notes)


def test_one_seed_has_no_spread():
    shown = table("main", fabricate.results(("plain", "hst"), (0.1,), (0,)))
    assert "±" not in text(shown, "hst", "10 %")
    assert shown.notes == ("One seed: no spread can be given.",)


def test_the_best_is_marked_and_the_upper_bound_never_is(everything):
    shown = table("main", everything)
    best = {row[0].text for row in shown.rows for cell in row if cell.best}
    assert best == {"hst_fb"}
    assert shown.rows[-1][0].text == "full_labels"
    assert {cell.text for cell in shown.rows[-1][1:]} == {"57.8 ± 0.0"}


def test_a_mean_over_fewer_seeds_is_not_called_the_best():
    results = fabricate.results(("plain", "asl", "hst"), (0.1,))
    results.loc[results["method"] == "hst", "mAP"] = 99.0
    assert [row[0].text for row in table("main", results).rows if row[1].best] == ["hst"]
    fewer = results[(results["method"] != "hst") | (results["seed"] == 0)]
    shown = table("main", fewer)
    means = fewer[fewer["method"] != "hst"].groupby("method")["mAP"].mean()
    assert [row[0].text for row in shown.rows if row[1].best] == [means.idxmax()]
    assert "not to be held against one over others" in shown.notes[0] + shown.notes[1]


def test_a_lone_method_is_not_called_the_best():
    shown = table("main", fabricate.results(("hst",), (0.1,)))
    assert not any(cell.best for row in shown.rows for cell in row)


def test_the_upper_bound_alone():
    shown = table("main", fabricate.results(("full_labels",), (0.1,)))
    assert shown.columns == ("method", "all known")
    assert text(shown, "full_labels", "all known") == "57.8 ± 0.0"


def test_a_larger_run_stands_apart(everything):
    (shown,) = TABLES["elsewhere"](everything)
    assert "10,000 training images" in shown.title
    assert [row[0].text for row in shown.rows] == ["plain", "ssgrl", "hst"]
    main = table("main", everything)
    assert text(main, "hst", "10 %") == mean_and_spread(everything[everything["images"] == 4000], "hst", 0.1)


def test_a_cell_that_was_run_twice_counts_once():
    results = fabricate.results(("plain",), (0.1,))
    again = results.assign(mAP=99.0)
    assert text(table("main", pd.concat([results, again])), "plain", "10 %") == "99.0 ± 0.0"


def test_ablations_have_the_papers_layout(everything):
    tables = TABLES["ablation"](everything)
    assert [shown.title.partition(",")[0] for shown in tables] == [
        "The whole of HST",
        "Transfer within an image",
        "Transfer across images",
        "How category features are made",
        "Feature blending",
    ]
    within = tables[1]
    assert [row[1].text for row in within.rows] == [
        *("SSGRL", "Ours IST", "Ours IST w/ stat", "Ours IST w/o L_ist", "Ours"),
    ]
    assert text(within, "hst.intra_statistical", "paper CF1") == "63.4"
    assert within.scope == "Ours: average over 10, 50 % known."
    assert "only the order is" in within.notes[-1]


def test_an_ablation_not_run_yet_is_a_dash(everything):
    tables = TABLES["ablation"](everything[everything["method"] != "hst.intra_no_loss"])
    assert text(tables[1], "hst.intra_no_loss", "mAP") == "–"
    assert text(tables[1], "hst.intra_no_loss", "paper mAP") == "75.5"
    assert text(tables[1], "hst.intra_only", "mAP") != "–"


def test_variants_are_compared_on_the_seeds_that_all_of_them_have(everything):
    some = without(everything, "hst.intra_only", 0.5, 1, 2)
    within = next(t for t in TABLES["ablation"](some) if t.title.startswith("Transfer within an image"))
    assert within.scope == "Ours: average over 10, 50 % known, seed 0 alone, which all of these have."
    (setting,) = grid.main_settings(some)
    scores = setting.rows.set_index(["method", "known", "seed"])["mAP"]
    assert text(within, "hst", "mAP") == f"{(scores['hst', 0.1, 0] + scores['hst', 0.5, 0]) / 2:.1f}"
    fixed = without(everything, "hst.threshold.0.5", 0.1, 2)
    assert table("thresholds", fixed).scope == "Ours: seeds 0, 1 alone, which all of these have."
    assert "(2 of 3)" not in text(table("thresholds", fixed), "0.5", "10 %")
    nothing_shared = without(without(everything, "hst.threshold.0.5", 0.1, 1, 2), "hst.threshold.0.4", 0.1, 0)
    assert text(table("thresholds", nothing_shared), "0.5", "10 %").endswith("(1 of 3)")


def test_variants_without_a_shared_seed_are_counted_among_themselves():
    results = fabricate.results(("hst", "hst.cross_only.k1", "hst.cross_only.k2"), (0.2, 0.5))
    for method, known, *missing in (("k1", 0.2, 2), ("k1", 0.5, 2), ("k2", 0.2, 1, 2), ("k2", 0.5, 0, 2)):
        results = without(results, f"hst.cross_only.{method}", known, *missing)
    shown = table("prototypes", results)  # seeds 0, 1 of k1; of k2 0 at one share and 1 at the other; hst has 2
    assert text(shown, "1", "20 %") == mean_and_spread(results, "hst.cross_only.k1", 0.2)
    assert text(shown, "2", "20 %").endswith("(1 of 2)")


def test_other_data_has_no_published_column(everything):
    own = everything.assign(data="holiday")
    for name in ("ablation", "thresholds"):
        assert not any("paper" in column and column != "in the paper" for column in table(name, own).columns)
    assert TABLES["order"](own) == []


def test_levels_are_comparable_where_the_setting_is_the_papers(everything):
    same = everything.assign(data="coco2014", images=82_081, backbone="resnet101")
    assert table("ablation", same).notes[-1] == "Paper: MS-COCO, average over its nine known shares."


def test_thresholds_and_the_papers_mean_over_the_same_shares(everything):
    shown = table("thresholds", everything)
    assert [row[0].text for row in shown.rows] == [*(f"0.{tenth}" for tenth in range(1, 10)), "learned"]
    assert shown.columns == ("threshold", "10 %", "50 %", "average", "paper")
    assert text(shown, "0.5", "paper") == f"{(64.8 + 77.5) / 2:.1f}" == "71.2"
    assert text(shown, "learned", "10 %") == mean_and_spread(everything[everything["images"] == 4000], "hst", 0.1)


def test_thresholds_apart(everything):
    tables = TABLES["thresholds_apart"](everything)
    assert [shown.title.partition(",")[0] for shown in tables] == [
        "Fixed threshold within an image",
        "Fixed threshold across images",
    ]
    assert all(len(shown.rows) == 10 for shown in tables)


def test_prototypes(everything):
    shown = table("prototypes", everything)
    assert [row[0].text for row in shown.rows] == ["1", "2", "5", "10", "20"]
    assert shown.columns == ("K", "20 %", "50 %", "80 %", "average")


def test_departures_are_paired_with_hst(everything):
    shown = table("departures", everything)
    assert [row[0].text for row in shown.rows] == fabricate.group("departure")
    small = everything[everything["images"] == 4000].set_index(["method", "known", "seed"])["mAP"]
    expected = sum(small["hst.evidence.sum", 0.1, seed] - small["hst", 0.1, seed] for seed in (0, 1, 2)) / 3
    assert text(shown, "hst.evidence.sum", "10 %").replace("−", "-") == f"{expected:+.2f}"
    assert text(shown, "hst.evidence.sum", "blocks") == "6"
    assert text(shown, "hst.evidence.sum", "verdict") == "not decidable"
    assert "p" not in shown.columns


def test_a_setting_changed_by_hand_is_paired_with_its_method():
    results = fabricate.results(("plain", "asl", "asl.shortcut_lr.0.0003", "ssgrl.dropout.0.5"), (0.1,))
    shown = table("settings", results)
    assert [row[0].text for row in shown.rows] == ["asl.shortcut_lr.0.0003"]  # nothing to compare the other with
    assert shown.rows[0][1].text == "asl with shortcut_lr: 0.0003"
    scores = results.set_index(["method", "seed"])["mAP"]
    expected = sum(scores["asl.shortcut_lr.0.0003", seed] - scores["asl", seed] for seed in (0, 1, 2)) / 3
    assert text(shown, "asl.shortcut_lr.0.0003", "10 %").replace("−", "-") == f"{expected:+.2f}"
    assert TABLES["settings"](fabricate.results(("plain", "hst"), (0.1,))) == []


def test_pseudo_labels_are_summed_over_seeds():
    results = fabricate.results(("plain", "hst"), (0.1,))
    own = results[results["method"] == "hst"]
    precision = sum(own["cross_right"]) / sum(own["cross_made"])
    recall = sum(own["cross_right"]) / sum(own["hidden_present"])
    shown = table("pseudo_labels", results)
    assert shown.rows[1][2].text == f"{100 * precision:.0f} % / {100 * recall:.0f} %"
    assert shown.rows[-1][0].text == "ceiling of recall"
    assert shown.rows[-1][2].text == "26 %"
    (setting,) = grid.main_settings(results)
    assert reach(setting) == {0.1: pytest.approx(0.26, abs=1e-3)}


def test_pseudo_labels_without_truth_or_without_any():
    results = fabricate.results(("hst",), (0.1, 0.5))
    unjudged = results.assign(intra_right=None, hidden_present=None, reachable=None)
    shown = table("pseudo_labels", unjudged)
    assert shown.rows[0][2].text == f"{results[results['known'] == 0.1]['intra_made'].sum():,.0f} made"
    assert {cell.text for cell in shown.rows[-1][2:]} == {"–"}
    nothing = table("pseudo_labels", results.assign(intra_made=0, intra_right=0))
    assert nothing.rows[0][2].text == "none made"
    assert TABLES["pseudo_labels"](fabricate.results(("plain",), (0.1,))) == []


def test_what_departures_fill_beside_hst_on_the_same_seeds():
    results = fabricate.results(("hst", "hst.evidence.sum", "hst.known_only"), (0.1,))
    made = {"hst": 300, "hst.evidence.sum": 20, "hst.known_only": None}
    counts = results["method"].map(made) + 10 * results["seed"]  # 300, 310, 320; 20, 30, 40
    results = results.assign(intra_made=counts, intra_right=counts / 2, cross_made=0, cross_right=0)
    results.loc[results["method"] == "hst.known_only", ["cross_made", "own_made"]] = None
    shown = table("departure_labels", without(results, "hst.evidence.sum", 0.1, 2))
    assert [row[0].text for row in shown.rows] == ["hst", "hst.evidence.sum", "hst.known_only"]
    assert text(shown, "hst", "within the image") == "305, 50 %"
    assert text(shown, "hst.evidence.sum", "within the image") == "25, 50 %"
    assert text(shown, "hst.evidence.sum", "across images") == "0"
    assert text(shown, "hst.known_only", "within the image") == "–"
    assert shown.scope == "Ours: seeds 0, 1 alone, which all of these have."
    assert TABLES["departure_labels"](fabricate.results(("plain", "hst"), (0.1,))) == []


def test_a_module_of_another_name_is_shown():
    results = fabricate.results(("hst",), (0.1,)).assign(blended_made=10.0, blended_right=5.0)
    (setting,) = grid.main_settings(results)
    assert [(entry.module, entry.precision) for entry in filled(setting)][-1] == ("blended", 0.5)


def test_cost_beside_quality():
    results = fabricate.results(("plain", "hst", "full_labels"), (0.1, 0.5))
    results.loc[results["method"] == "plain", "training_seconds"] = 2.0
    results.loc[results["method"] == "hst", "training_seconds"] = 50.0
    shown = table("cost", results)
    assert (text(shown, "plain", "training"), text(shown, "hst", "training")) == ("2.0 s", "50 s")
    assert text(shown, "hst", "times plain") == "25"
    assert text(shown, "full_labels", "mAP") == "57.8 ± 0.0"
    (setting,) = grid.main_settings(results)
    assert costs(setting)[1] == [0.1, 0.5]


def test_paired_tests_say_who_is_ahead(everything):
    shown = table("tests", everything)
    assert text(shown, "plain", "blocks") == "15"
    assert text(shown, "plain", "verdict") == "ahead"
    assert text(shown, "hst_fb", "verdict") == "behind"
    assert any("not fully independent" in note for note in shown.notes)


def test_few_blocks_are_not_decidable_and_print_no_p():
    shown = table("tests", fabricate.results(("plain", "ssgrl", "hst"), (0.1, 0.5)))
    assert {row[-1].text for row in shown.rows} == {"not decidable"}
    assert "p" not in shown.columns
    assert "p, Holm" not in shown.columns
    assert "Not decidable: fewer than 9 blocks have both methods." in shown.notes


def test_what_many_comparisons_cannot_show_is_said():
    shown = table("tests", fabricate.results(known=(0.1, 0.5, 0.9)))
    assert text(shown, "plain", "blocks") == "9"
    assert text(shown, "plain", "verdict") == "no difference shown"
    assert any("the smallest possible p is 0.055" in note for note in shown.notes)


def test_blocks_of_several_data_sets_are_pooled():
    results = pd.concat([fabricate.results(("plain", "hst"), data=data) for data in ("voc2007", "coco2014")])
    (found,) = against(results, "hst")
    assert found.blocks == 18
    assert len(TABLES["main"](results)) == 6


def test_a_larger_run_is_no_further_block(everything):
    assert {found.blocks for found in against(everything, "hst")} == {15}


def test_order_beside_the_papers(everything):
    (setting,) = grid.main_settings(everything)
    found, shared = side_by_side(setting)
    assert shared == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert found.index[0] == "hst"
    assert found.loc["curriculum", "theirs"] == pytest.approx((26.7 + 51.5 + 70.0 + 74.0 + 78.0) / 5)
    assert list(with_places(found)["ours_place"]) == list(range(1, 10))


def test_the_order_rests_on_seeds_that_all_methods_have():
    """Seed 1 lifts what has it; methods that have seed 0 alone are not to fall behind because of that."""
    rows = fabricate.results(("plain", "asl", "ssgrl", "hst"), known=(0.1, 0.5), seeds=(0, 1))
    rows = rows.assign(mAP=rows["mAP"] + 30 * rows["seed"])
    rows = rows[~((rows["method"] == "ssgrl") & (rows["seed"] == 1))]
    (setting,) = grid.main_settings(rows)
    first = rows[rows["seed"] == 0].groupby("method")["mAP"].mean()
    found, _ = side_by_side(setting)
    assert found["ours"].to_dict() == pytest.approx({name: first[name] for name in found.index})
    assert TABLES["order"](rows)[0].scope == "Ours: seed 0 alone, which all of these have."
    alone = grid.main_settings(rows[rows["seed"] == 0])[0]
    assert agreements(setting) == agreements(alone)


def test_agreement_is_that_of_the_ranks():
    results = fabricate.results(("plain", "ssgrl", "kggr", "sst", "hst"), (0.1,))
    for score, method in enumerate(("ssgrl", "sst", "kggr", "hst")):  # the paper: ssgrl < kggr < sst < hst
        results.loc[results["method"] == method, "mAP"] = float(score)
    (setting,) = grid.main_settings(results)
    first = agreements(setting)[0]
    assert (first.metric, first.where, first.methods) == ("mAP", "10 %", 4)
    assert first.kendall == pytest.approx((5 - 1) / 6)
    assert first.spearman == pytest.approx(1 - 6 * 2 / (4 * 15))


def test_two_methods_are_too_few_for_an_order():
    results = fabricate.results(("ssgrl", "hst"), (0.1,))
    (setting,) = grid.main_settings(results)
    assert agreements(setting) == []


def test_what_is_missing(everything):
    partial = without(fabricate.results(("plain", "hst"), (0.1, 0.5)), "hst", 0.5, 1, 2)
    (setting,) = grid.main_settings(partial)
    assert grid.missing(setting) == {"hst": [(0.5, [1, 2])]}
    (whole,) = grid.main_settings(everything)
    assert grid.missing(whole) == {}


def test_variants_are_those_with_rows(everything):
    (setting,) = grid.main_settings(everything)
    assert variants_of(setting, "prototypes") == fabricate.group("prototypes")
    assert variants_of(grid.main_settings(fabricate.results())[0], "prototypes") == []


@pytest.mark.parametrize(
    "results",
    [
        fabricate.results(()),
        fabricate.results(("hst",), (0.1,), (0,)),
        fabricate.results(("full_labels",), (0.1,), (0,)),
        fabricate.results(("plain", "hst"), (0.1,), (0,)),
        fabricate.results(("hst.evidence.sum",), (0.1,), (0,)),
        fabricate.results(("plain", "hst"), (0.1,)).assign(mAP=None, OF1=None, CF1=None),
        fabricate.results(("plain", "hst"), (0.15, 0.5)).assign(training_seconds=None, peak_memory_gib=None),
        fabricate.results(("a_method_of_my_own", "hst"), (0.1,), backbone=None),
    ],
    ids=["empty", "one", "bound", "one seed", "one variant", "no scores", "no cost", "unknown method"],
)
def test_every_table_of_every_part_of_a_sweep_can_be_shown(results):
    for name, build in TABLES.items():
        for shown in build(results):
            assert shown.rows or name == "main"
            assert all(len(row) == len(shown.columns) for row in shown.rows)
            assert "nan" not in " ".join(cell.text for row in shown.rows for cell in row).lower()


def test_a_note_is_said_once():
    tables = [Table("a", ("x",), (), ("first", "both")), Table("b", ("x",), (), ("both",))]
    assert [shown.notes for shown in said_once(tables)] == [("first",), ("both",)]
    scoped = [Table(name, ("x",), (), ("both",), "At 10 %.") for name in "ab"]
    assert [shown.notes for shown in said_once(scoped)] == [("At 10 %.",), ("At 10 %.", "both")]


def test_columns_that_say_nothing_are_left_out():
    shown = Table("a", ("x", "p", "y"), ((Cell("1"), Cell("–"), Cell("2")), (Cell("3"), Cell("–"), Cell("–"))))
    assert without_empty_columns(shown).columns == ("x", "y")
