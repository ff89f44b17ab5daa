"""A report is made of values that were looked at first: what cannot be shown is named, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fewtags.errors import UserError
from fewtags.report import run_report

FILL = {"category": "a", "module": "intra"}
NOT_SHOWN: dict[str, tuple[str, Any, str]] = {
    "a score that is text": ("metrics.json", {"mAP": "high"}, "mAP: input should be a valid number"),
    "a score that is a list": ("metrics.json", {"CF1_top3": [1]}, "CF1_top3"),
    "categories that are a list": ("metrics.json", {"per_category": [1, 2]}, "per_category"),
    "a category's score that is text": ("metrics.json", {"per_category": {"a": "b"}}, r"per_category\.a"),
    "a known share that is none": ("metrics.json", {"known": {}}, "known"),
    "names that are numbers": (
        "metrics.json",
        {"categories_without_positives": 3},
        "categories_without_positives",
    ),
    "thresholds that are text": ("labels.json", {"decision_thresholds": "high"}, "decision_thresholds"),
    "images that are none": ("examples/examples.json", {"images": 5}, "images"),
    "an image without a file": ("examples/examples.json", {"images": [{}]}, r"images\.0\.file: field required"),
    "a fill of nothing": (
        "examples/examples.json",
        {"images": [{"file": "0.png", "filled": [FILL | {"category": None}]}]},
        r"images\.0\.filled\.0\.category",
    ),
    "evidence that is text": (
        "examples/examples.json",
        {"images": [{"file": "0.png", "filled": [FILL | {"evidence": "much"}]}]},
        r"filled\.0\.evidence",
    ),
    "a map with a gap": (
        "examples/examples.json",
        {"images": [{"file": "0.png", "attention": [{"category": "a", "kind": "sd", "map": [[1.0], []]}]}]},
        "rows of one length",
    ),
    "a matrix of other categories": (
        "examples/examples.json",
        {"cooccurrence": {"image": "0.png", "categories": ["a"], "matrices": {"ist": [[1.0, 2.0]]}}},
        "ist is 1 × 2 for 1 categories",
    ),
}


@pytest.mark.parametrize("what", NOT_SHOWN)
def test_a_value_that_cannot_be_shown_is_named(run: Path, what: str):
    file, change, said = NOT_SHOWN[what]
    path = run / file
    path.parent.mkdir(exist_ok=True)
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(content | change))
    with pytest.raises(UserError, match=said) as problem:
        run_report(run)
    assert path.name in str(problem.value)


def test_settings_that_cannot_be_shown_are_named(run: Path):
    (run / "recipe.yaml").write_text("known: much\n")
    with pytest.raises(UserError, match=r"recipe\.yaml: known: input should be a valid number"):
        run_report(run)


def test_a_history_that_is_no_numbers_is_named(run: Path):
    (run / "history.csv").write_text("epoch,seconds\none,1\n")
    with pytest.raises(UserError, match=r"history\.csv: column epoch: holds something that is no number"):
        run_report(run)


def test_a_whole_run_has_its_report(run: Path):
    assert run_report(run).stat().st_size > 1000
