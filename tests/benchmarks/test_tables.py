"""What is shown of the measurements, and how targets are judged."""

import importlib.util
import re

import pytest

from benchmarks.bench import FOLDER
from benchmarks.charts import chart
from benchmarks.tables import TABLES, regenerated, side_by_side, summary, text
from benchmarks.targets import TARGETS, Target
from fewtags.errors import UserError
from tests.benchmarks.fabricate import row, rows, too_large


def cells(table, line=0):
    return dict(zip(table.columns, (cell.text for cell in table.rows[line]), strict=False))


def test_medians_over_rounds():
    found = summary(rows(*(row(seconds=value, round=turn) for turn, value in enumerate((1.0, 5.0, 2.0)))))
    assert found["seconds"].tolist() == [2.0]


def test_ratios_say_how_many_times_less_ours_takes():
    table = side_by_side(
        rows(row("sd", seconds=0.5, gigabytes=0.5), row("sd", "textbook", seconds=6.0, gigabytes=4.0)), "sd"
    )
    shown = cells(table)
    assert (shown["ours"], shown["textbook"]) == ("500 ms, 500 MB", "6.00 s, 4.00 GB")
    assert (shown["time"], shown["memory"]) == ("12×", "8×")
    assert shown["target"] == "time ratio ≥ 10× met"


def test_against_the_bare_backbone_the_ratio_is_what_ours_costs():
    shown = cells(side_by_side(rows(row("train", seconds=1.5), row("train", "bare", seconds=1.0)), "train"))
    assert shown["time"] == "1.5×"
    assert shown["target"] == "time ratio ≤ 1.35× MISSED"


def test_what_does_not_fit_is_said_and_not_compared():
    table = side_by_side(
        rows(
            row(categories=1000, batch=32, gigabytes=7.0),
            too_large(module="heads", contender="textbook", categories=1000, batch=32),
        ),
        "heads",
    )
    shown = cells(table)
    assert shown["textbook"] == "does not fit"
    assert "gigabytes ≤ 8 GB met" in shown["target"]


def test_every_promise_of_a_size_is_judged():
    table = side_by_side(
        rows(row(categories=200, batch=8, seconds=4.0), row("heads", "textbook", 200, 8, seconds=40.0)), "heads"
    )
    target = cells(table)["target"]
    assert "time ratio ≥ 7× met" in target
    assert "seconds ≤ 3.16 s MISSED" in target
    assert "gigabytes ≤ 1.5 GB met" in target


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_targets_are_met_on_the_right_side(target: Target):
    better = 1.01 if target.sense == "at least" else 0.99
    assert target.met(target.bound)
    assert target.met(target.bound * better)
    assert not target.met(target.bound / better)


def test_terminal_shows_modules_with_rows_only():
    shown = text(rows(row("sd"), row("sd", "textbook")))
    assert "SD: category features" in shown
    assert "all heads" not in shown


def test_document_tables_are_made_again_from_the_csv(tmp_path):
    (tmp_path / "results.csv").write_text(rows(row("sd"), row("sd", "textbook", seconds=30.0)).to_csv(index=False))
    document = "before\n<!-- table sd from results.csv -->\nold\n<!-- end -->\nafter\n"
    made = regenerated(document, tmp_path)
    assert made.startswith("before\n<!-- table sd from results.csv -->\n")
    assert made.endswith("<!-- end -->\nafter\n")
    assert "30×" in made
    assert "old" not in made
    assert regenerated(made, tmp_path) == made
    assert "No rows yet" in regenerated(document.replace("results.csv", "none.csv"), tmp_path)
    with pytest.raises(UserError, match="there is no table 'sdd'"):
        regenerated(document.replace("table sd ", "table sdd "), tmp_path)


def test_the_page_shows_what_the_csv_files_hold_and_every_table():
    page = (FOLDER / "docs" / "performance.md").read_text(encoding="utf-8")
    assert regenerated(page, FOLDER) == page
    assert set(re.findall(r"<!-- table (\S+) from", page)) == {*TABLES, "others"}


def test_every_command_of_the_page_is_there():
    page = (FOLDER / "docs" / "performance.md").read_text(encoding="utf-8")
    for module in re.findall(r"python -m ([\w.]+)", page):
        assert importlib.util.find_spec(module) is not None, module


def test_chart_draws_time_and_memory_of_what_fits(tmp_path):
    measured = [row("sd", contender, size) for contender in ("ours", "textbook") for size in (20, 80)]
    measured += [too_large(module="sd", contender="textbook", categories=1000), row("sd", "ours", 1000)]
    figure = chart(rows(*measured))
    time_of_sd = figure.axes[0]
    drawn = {line.get_label(): list(line.get_xdata()) for line in time_of_sd.get_lines()}
    assert drawn == {"ours": [20, 80, 1000], "textbook": [20, 80]}
    figure.savefig(tmp_path / "chart.png")
