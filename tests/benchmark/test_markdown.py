import subprocess
import sys
from pathlib import Path

import pytest

from fewtags.benchmark import markdown
from fewtags.benchmark.table import Cell, Table
from fewtags.benchmark.tables import TABLES
from fewtags.errors import UserError
from tests.benchmark import fabricate

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "# Results\n\n<!-- table {} from docs/benchmark/results.csv -->\nold\n<!-- end -->\n\nText stays.\n"


@pytest.fixture
def page(tmp_path):
    """docs/results.md with one table, and the rows it is made from."""
    file = tmp_path / "docs" / "results.md"
    (file.parent / "benchmark").mkdir(parents=True)
    fabricate.results(("plain", "hst"), (0.1,)).to_csv(file.parent / "benchmark" / "results.csv", index=False)
    file.write_text(PAGE.format("main"))
    return file


def test_committed_tables_are_those_of_the_committed_rows():
    file = DOCS / "results.md"
    text = file.read_text(encoding="utf-8")
    assert markdown.regenerated(text, file) == text, "run: python -m fewtags.benchmark.markdown docs/results.md"


def test_a_table_is_written_between_its_markers(page):
    assert markdown.regenerate(page) == ["main"]
    text = page.read_text()
    assert text.startswith(
        "# Results\n\n<!-- table main from docs/benchmark/results.csv -->\n\n**mAP, coco-sample"
    )
    assert text.endswith("\n\n<!-- end -->\n\nText stays.\n")
    assert "| `hst` | **44.1 ± 0.4** |" in text
    assert "old" not in text


def test_a_second_time_changes_nothing(page):
    markdown.regenerate(page)
    text = page.read_text()
    assert markdown.regenerate(page) == []
    assert page.read_text() == text


def test_several_tables_in_one_file(page):
    page.write_text(PAGE.format("tests") + PAGE.format("main"))
    assert markdown.regenerate(page) == ["tests", "main"]
    text = page.read_text()
    assert text.count("Text stays.") == 2
    assert text.index("hst against each") < text.index("mAP, coco-sample")


@pytest.mark.parametrize("name", TABLES)
def test_without_results_each_place_says_so(tmp_path, name):
    file = tmp_path / "results.md"
    file.write_text(PAGE.format(name))
    markdown.regenerate(file)
    assert ("No rows yet." in file.read_text()) == (name != "contradictions")


def test_a_file_without_markers_stays_as_it_is(tmp_path):
    file = tmp_path / "plain.md"
    file.write_text("nothing here\n")
    assert markdown.regenerate(file) == []
    assert file.read_text() == "nothing here\n"


def test_names_are_code_and_signs_are_escaped():
    cells = (Cell("hst.pair_prior", code=True), Cell("a|b_c*", best=True))
    text = markdown.markdown([Table("t_1", ("x", "y"), (cells,), ("n < 1",))])
    assert text == "**t\\_1**\n\n| x | y |\n|---|---|\n| `hst.pair_prior` | **a\\|b\\_c\\*** |\n\nn \\< 1"


def test_an_unknown_table_is_named(page):
    page.write_text(PAGE.format("manin"))
    with pytest.raises(UserError, match=r"there is no table 'manin'; there are main, elsewhere, ablation"):
        markdown.regenerate(page)


@pytest.mark.parametrize("rest", ["no end", "<!-- table tests from x.csv -->\n<!-- end -->\n"])
def test_a_table_that_is_not_closed(page, rest):
    page.write_text("<!-- table main from docs/benchmark/results.csv -->\n" + rest)
    with pytest.raises(UserError, match="the table 'main' is not closed; write <!-- end --> below it"):
        markdown.regenerate(page)


def test_results_that_cannot_be_read(page):
    (page.parent / "benchmark" / "results.csv").write_text("")
    with pytest.raises(UserError, match=r"results.csv: not readable as a table of results"):
        markdown.regenerate(page)


def test_results_without_a_column(page):
    (page.parent / "benchmark" / "results.csv").write_text("data,method,known\n")
    with pytest.raises(UserError, match=r"results.csv: no column 'seed'"):
        markdown.regenerate(page)


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert markdown.main([str(tmp_path / "none.md")]) == 2
    assert "none.md: not readable as text" in capsys.readouterr().err


def test_without_a_file(capsys):
    assert markdown.main([]) == 2
    assert "usage: python -m fewtags.benchmark.markdown FILE.md" in capsys.readouterr().err


def test_as_a_command(page, capsys):
    command = [sys.executable, "-m", "fewtags.benchmark.markdown", str(page)]
    assert "changed main" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert markdown.main([str(page)]) == 0
    assert "all tables are up to date" in capsys.readouterr().out
