from pathlib import Path

import pytest
from rich.console import Console

from fewtags import demo as demo_module
from fewtags.recipe import Recipe
from fewtags.training.folder import RunFolder
from tests.conftest import TINY


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(Recipe(**(TINY | {"known": 0.3, "epochs": 2})).to_yaml())
    monkeypatch.setattr(demo_module, "DATA", "scenes:train=48,test=24,size=64")
    monkeypatch.setattr(demo_module, "RECIPE", str(tmp_path / "small.yaml"))


def test_demo_trains_both_and_writes_the_page(small, tmp_path: Path):
    console = Console(record=True, width=200)
    demo_module.demo(tmp_path / "demo", [0], console)
    assert [RunFolder(tmp_path / "demo" / m).metrics()["method"] for m in ("plain", "hst")] == ["plain", "hst"]
    page = (tmp_path / "demo" / "report.html").read_text()
    assert (tmp_path / "demo" / "picture.png").stat().st_size > 10_000
    assert "report.html" in console.export_text()
    for wanted in ("HST", "plain", "SD", "SA"):
        assert wanted in page
    demo_module.demo(tmp_path / "demo", [0], console)  # a second demo replaces the first


def test_demo_over_seeds_says_the_margins(small, tmp_path: Path):
    console = Console(record=True, width=200)
    demo_module.demo(tmp_path / "demo", [1, 2], console)
    assert "of 2 seeds: mAP seed 1:" in console.export_text()
