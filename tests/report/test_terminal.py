import io
import json

from rich.console import Console

from fewtags.report import metrics_table
from fewtags.report.terminal import methods_table
from tests.report.fabricate import write_run


def shown(metrics):
    console = Console(width=120, record=True, color_system=None, file=io.StringIO())
    console.print(metrics_table(metrics))
    return console.export_text()


def made_up(tmp_path, method, mean_ap):
    return json.loads((write_run(tmp_path / method, method, mean_ap) / "metrics.json").read_text())


def test_one_models_figures_in_full(tmp_path):
    metrics = made_up(tmp_path, "hst", 61.2) | {"categories_without_positives": list("abcdefg"), "OP": 12.34}
    text = " ".join(shown(metrics).split())
    assert "mAP 61.2 · mAP, VOC-interpolated 62.3" in text
    assert "12.3" in text
    assert "top 3" in text
    assert "7 categories have no present test label and are left out of mAP: a, b, c, d, e, …" in text


def test_several_models_one_row_each_the_best_in_bold(tmp_path):
    table = metrics_table([made_up(tmp_path, "hst", 61.2), made_up(tmp_path, "plain", 55.0)])
    cells = list(table.columns[2].cells)
    assert cells == ["[bold]61.2[/bold]", "55.0"]
    text = shown([made_up(tmp_path / "again", "hst", 61.2)])
    assert "hst" in text
    assert "1\N{NARROW NO-BREAK SPACE}min\N{NARROW NO-BREAK SPACE}23\N{NARROW NO-BREAK SPACE}s" in text


def test_missing_figures_are_dashes():
    text = shown([{"method": "plain", "mAP": None}, {"method": "hst"}])
    assert text.count("–") == 2 * 7


def test_seeds_are_shown_when_they_differ():
    headings = [column.header for column in metrics_table([{"seed": 0}, {"seed": 1}]).columns]
    assert headings[:3] == ["method", "known", "seed"]


def test_methods_by_name():
    table = methods_table({"plain": "a linear layer", "hst": "everything"})
    assert [list(column.cells) for column in table.columns] == [["plain", "hst"], ["a linear layer", "everything"]]
