"""`fewtags simulate`: the truth answers only what is asked, every order is the review page's, and it goes on."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock
from rich.console import Console
from typer.testing import CliRunner

from fewtags import cli
from fewtags.completion.complete import complete
from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.labels.formats import folder
from fewtags.labels.hide import hide
from fewtags.labels.table import HUMAN
from fewtags.recipe import Recipe
from fewtags.review.index import Names, open_index
from fewtags.review.orders import ORDERS
from fewtags.simulation import rounds
from fewtags.simulation.results import reached, read_results
from fewtags.simulation.simulate import Outcome, simulate
from fewtags.simulation.truth import open_truth
from fewtags.simulation.wanted import Wanted
from tests.conftest import TINY
from tests.simulation.fabricate import made_up

PLAIN = Recipe(**(TINY | {"epochs": 2, "method": "plain"}))
START, ANSWERS = 0.3, 8
SMALL = Wanted(START, rounds=2, answers_per_round=ANSWERS, orders=("value",))
DOCS = (Path(__file__).parent.parent / "docs" / "simulate.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def played(colours: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds of every order, models kept."""
    out = tmp_path_factory.mktemp("simulated") / "out"
    simulate(str(colours), PLAIN, out, replace(SMALL, orders=ORDERS), keep_runs=True)
    return out


def run_of(out: Path, order: str, number: int) -> Path:
    name = f"{order}-{number}" if order in ORDERS else order
    return out / "runs" / "seed-0" / ("start" if number == 0 and order in ORDERS else name)


def questions(out: Path, order: str, number: int) -> list[tuple[str, str]]:
    table = pd.read_csv(run_of(out, order, number) / f"questions-{order}.csv")
    return list(zip(table["image"], table["category"], strict=True))


def test_every_row_is_the_metrics_of_its_run(played: Path):
    rows = read_results(played)
    expected = [(order, number) for order in ORDERS for number in (0, 1, 2)] + [("full_labels", 0)]
    assert list(zip(rows["order"], rows["round"], strict=True)) == expected
    for row in rows.to_dict("records"):
        metrics = json.loads((run_of(played, row["order"], row["round"]) / "metrics.json").read_text())
        for name in ("mAP", "OF1", "CF1"):
            assert row[name] == pytest.approx(metrics[name], abs=1e-4)
        assert metrics["method"] == "plain"
    assert rows["label_accuracy"].between(0, 100).sum() == 12
    assert set(rows["seed"]) == {0}


def test_only_unknown_entries_are_asked_and_each_once(played: Path, colours: Path):
    train = open_data(str(colours)).table.split("train")
    values = hide(train.values, START, 0)
    start = {
        (image, category)
        for i, image in enumerate(train.images)
        for c, category in enumerate(train.categories)
        if values[i, c] != 0
    }
    truth = {
        (image, category): train.values[i, c]
        for i, image in enumerate(train.images)
        for c, category in enumerate(train.categories)
    }
    rows = read_results(played).set_index(["order", "round"])
    for order in ORDERS:
        asked = [*questions(played, order, 0), *questions(played, order, 1)]
        assert len(set(asked)) == len(asked) == 2 * ANSWERS
        assert not set(asked) & start
        found = sum(truth[question] == 1 for question in asked)
        row = rows.loc[(order, 2)]
        assert (row["answers"], row["presents_found"]) == (2 * ANSWERS, found)
        assert row["answers_per_present"] == pytest.approx(2 * ANSWERS / found, abs=1e-4)
        assert row["known"] == pytest.approx((len(start) + 2 * ANSWERS) / train.values.size, abs=1e-4)
        assert row["asked"] == pytest.approx(2 * ANSWERS / train.values.size, abs=1e-4)


def test_labels_that_nobody_asked_for_change_no_model(played: Path, colours: Path, tmp_path: Path):
    """Every training label neither known at the start nor asked for is flipped, and every test label."""
    table = open_data(str(colours)).table
    known = {*questions(played, "value", 0), *questions(played, "value", 1)}
    values = -table.values
    train = [row for row, split in enumerate(table.splits) if split == "train"]
    given = hide(table.values[train], START, 0) != 0
    for row, image in enumerate(table.images[: len(train)]):
        for column, category in enumerate(table.categories):
            if given[row, column] or (image, category) in known:
                values[row, column] = table.values[row, column]
    other = tmp_path / "other"
    shutil.copytree(colours, other)
    folder.write(table.with_values(values), other)
    flipped = (values[train] != table.values[train]).mean()
    assert 0.5 < flipped < 0.7
    simulate(str(other), PLAIN, tmp_path / "out", SMALL, keep_runs=True)
    for number in (0, 1, 2):
        here, there = run_of(played, "value", number), run_of(tmp_path / "out", "value", number)
        for name in ("model.safetensors", "questions-value.csv"):
            assert (here / name).read_bytes() == (there / name).read_bytes()
    before, after = (read_results(out).set_index(["order", "round"]) for out in (played, tmp_path / "out"))
    assert before.loc[("value", 2), "mAP"] != after.loc[("value", 2), "mAP"]
    full = "runs/seed-0/full_labels/model.safetensors"
    assert (played / full).read_bytes() != (tmp_path / "out" / full).read_bytes()


def test_questions_are_those_of_the_review_page(
    played: Path, colours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The start's labels in a folder, `fewtags complete`, and the index that the page reads."""
    table = open_data(str(colours)).table
    train = table.split("train")
    values = table.values.copy()
    values[: len(train)] = hide(train.values, START, 0)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(colours, "colours")
    folder.write(table.with_values(values), "colours")
    complete(run_of(played, "value", 0), "colours", "filled")
    names = Names(table.images, table.categories, (values[: len(train)] == 1).sum(0))
    index = open_index(Path("filled/suggestions.parquet"), names, tmp_path / "cache")
    for order in ORDERS:
        first = index.orders[order][:ANSWERS]
        page = [(table.images[index.image[row]], table.categories[index.category[row]]) for row in first]
        assert questions(played, order, 0) == page


def test_a_killed_simulation_goes_on(played: Path, colours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Stopped when round 1 was trained but not finished: it goes on from there, and the figures are equal."""
    real, calls = rounds.train, []
    finish = sys.modules["fewtags.training.run"].finish

    def counted(*args, **kwargs):
        calls.append((Path(args[2]).name, kwargs["resume"]))
        return real(*args, **kwargs)

    def killed(*args):
        if args[0].path.name == "value-1":
            raise KeyboardInterrupt
        return finish(*args)

    monkeypatch.setattr(rounds, "train", counted)
    with monkeypatch.context() as patch:
        patch.setattr("fewtags.training.run.finish", killed)
        with pytest.raises(KeyboardInterrupt):
            simulate(str(colours), PLAIN, tmp_path, SMALL)
    assert list(read_results(tmp_path)["round"]) == [0, 0]
    assert not (tmp_path / "simulation.html").exists()
    console = Console(record=True, width=160)
    simulate(str(colours), PLAIN, tmp_path, SMALL, console=console)
    assert calls[2:] == [("value-1", False), ("value-1", True), ("value-2", False)]
    said = console.export_text()
    assert "[3/4] seed 0  value  round 1" in said
    assert "[2/4]" not in said
    whole = read_results(played)
    pd.testing.assert_frame_equal(
        read_results(tmp_path), whole[whole["order"].isin(["value", "full_labels"])].reset_index(drop=True)
    )
    assert not list(tmp_path.rglob("*.safetensors"))  # what fills the disk is gone
    simulate(str(colours), PLAIN, tmp_path, SMALL)
    assert len(calls) == 5
    simulate(str(colours), PLAIN, tmp_path, replace(SMALL, orders=("confident",), rounds=1))  # one order more
    assert calls[5:] == [("confident-1", False)]
    assert set(read_results(tmp_path)["order"]) == {"value", "confident", "full_labels"}


def test_when_everything_is_asked_it_is_the_model_of_all_labels(colours: Path, tmp_path: Path):
    everything = Wanted(START, rounds=3, answers_per_round=1000, orders=("random",))
    outcome = simulate(str(colours), PLAIN, tmp_path, everything, keep_runs=True)
    assert list(outcome.rows["order"]) == ["random", "random", "full_labels"]
    last = outcome.rows.iloc[1]
    assert (last["known"], last["label_accuracy"], last["completeness"]) == (1, 100, 100)
    full, asked = (tmp_path / "runs" / "seed-0" / name for name in ("full_labels", "random-1"))
    assert (full / "model.safetensors").read_bytes() == (asked / "model.safetensors").read_bytes()
    assert reached(outcome.rows, "random").share == 1
    assert pd.read_csv(asked / "questions-random.csv").empty


def test_answers_are_marked_as_a_persons(colours: Path):
    truth = open_truth(str(colours), PLAIN)
    known = truth.answer(truth.start(START, 0), np.array([3]), np.array([1]))
    source = truth.to_train(known).table.source
    assert source is not None
    assert [tuple(place) for place in np.argwhere(source == HUMAN)] == [(3, 1)]
    assert len(truth.to_train(known).table) == 64
    assert truth.to_complete(known).table.splits == ("train",) * 48


def test_the_page_shows_plots_and_a_sentence_that_is_computed(played: Path):
    page = (played / "simulation.html").read_text()
    rows = read_results(played).set_index(["order", "round"])
    share = rows.loc[("value", 2), "mAP"] / rows.loc[("full_labels", 0), "mAP"]
    asked = 2 * ANSWERS / 192
    text = page.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert f"{100 * asked:.1f} % of the labels asked, {100 * share:.0f} % of full-label mAP reached" in text
    labels = re.findall(r'role="img" aria-label="([^"]*)"', page)
    assert [label.partition(" against")[0] for label in labels] == [
        *("Score of the model", "Labels right", "Present labels found"),
    ]
    for order in ORDERS:
        assert f"{order} {rows.loc[(order, 2), 'mAP']:.1f}" in labels[0]
    assert f"full_labels {rows.loc[('full_labels', 0), 'mAP']:.1f}" in page
    assert "<script" not in page


def test_other_settings_or_a_second_process_are_refused(played: Path, colours: Path):
    before = (played / "simulation.csv").read_bytes()
    for recipe, wanted, told in (
        (PLAIN, replace(SMALL, start=0.2), "start: 0.3 → 0.2"),
        (PLAIN, replace(SMALL, answers_per_round=9), "answers_per_round: 8 → 9"),
        (PLAIN.replace(epochs=7), SMALL, "epochs: 2 → 7"),
    ):
        with pytest.raises(UserError, match=re.escape(told)):
            simulate(str(colours), recipe, played, wanted)
    with FileLock(played / ".lock"), pytest.raises(UserError, match="another `fewtags simulate` is running"):
        simulate(str(colours), PLAIN, played, SMALL)
    assert (played / "simulation.csv").read_bytes() == before


def test_the_command_with_hst(colours: Path, tmp_path: Path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(Recipe(**(TINY | {"epochs": 2})).to_yaml())
    asked = ["--rounds", "1", "--start", "0.4", "--answers-per-round", "12", "--orders", "uncertain"]
    words = [
        "simulate",
        str(colours),
        *asked,
        "--recipe",
        str(recipe),
        "--seeds",
        "3",
        "--out",
        str(tmp_path / "s"),
    ]
    answer = CliRunner().invoke(cli.app, words)
    assert answer.exit_code == 0, (answer.output, answer.exception)
    assert "of full-label mAP reached (order uncertain" in " ".join(answer.output.split())
    assert "simulation.html" in answer.output
    rows = read_results(tmp_path / "s")
    assert list(zip(rows["order"], rows["seed"], rows["round"], strict=True)) == [
        *(("uncertain", 3, 0), ("uncertain", 3, 1), ("full_labels", 3, 0)),
    ]


def test_the_commands_of_the_page_are_understood(monkeypatch: pytest.MonkeyPatch):
    lines = [line for block in re.findall(r"```\n(.*?)```", DOCS, flags=re.S) for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("fewtags simulate")]
    assert commands
    asked = []

    def instead(data, recipe, out, wanted, **_):
        asked.append((data, recipe.method))
        return Outcome(made_up(), {}, Path("page.html"))

    monkeypatch.setattr("fewtags.simulation.simulate.simulate", instead)
    for command in commands:
        answer = CliRunner().invoke(cli.app, shlex.split(command, comments=True)[1:])
        assert answer.exit_code == 0, (command, answer.output, answer.exception)
    assert len(asked) == len(commands)


def test_every_column_is_explained_on_the_page(played: Path):
    for name in read_results(played).columns:
        assert f"`{name}`" in DOCS
