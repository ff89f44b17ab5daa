"""What a sweep's folder says of a sweep: what is done, and whether it may go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewtags.benchmark.cells import Block
from fewtags.benchmark.plan import Plan
from fewtags.benchmark.recipes import cell_recipe, stored
from fewtags.errors import UserError
from fewtags.files import write_text
from fewtags.recipe import Recipe

BLOCKS = (Block(("plain", "hst", "full_labels"), (0.1, 0.5), (0, 1)),)


def a_plan(folder: Path, blocks=BLOCKS, **settings) -> Plan:
    return Plan(["scenes"], blocks, Recipe(**({"device": "cpu"} | settings)), folder)


def finish(plan: Plan, *places: int) -> None:
    """Pretend that these cells have run."""
    for place in places:
        cell = plan.cells[place]
        recipe = plan.recipe(cell)
        figures = {"mAP": 50.0, "images": 10, "test_images": 5, "epochs": recipe.epochs, "seconds": 2.0}
        metrics = {"method": cell.method, "known": cell.known, "seed": cell.seed, **figures}
        write_text(plan.run_folder(cell) / "recipe.yaml", recipe.to_yaml())
        write_text(plan.run_folder(cell) / "metrics.json", json.dumps(metrics))
        plan.record(cell)


def begun(folder: Path, *places: int, **settings) -> Plan:
    plan = a_plan(folder, **settings)
    plan.start(redo=False)
    finish(plan, *places)
    return plan


def test_recipes_are_stored_without_the_machine(tmp_path: Path):
    begun(tmp_path, threads=1, workers=3)
    for method in ("plain", "hst", "full_labels"):
        recipe = stored(tmp_path, method)
        assert (recipe.method, recipe.known, recipe.seed) == (method, 1.0, 0)
        assert (recipe.device, recipe.threads, recipe.workers) == ("auto", None, None)
        assert recipe.freeze_backbone is True  # decided, so that a GPU cannot change it half-way


def test_a_cells_recipe_has_its_values_and_the_definition_of_its_method(tmp_path: Path):
    plan = a_plan(tmp_path, (Block(("hst.intra_only",), (0.3,), (4,)),), cross=True)
    recipe = plan.recipe(plan.cells[0])
    assert (recipe.method, recipe.known, recipe.seed, recipe.cross) == ("hst.intra_only", 0.3, 4, False)


def test_cells_with_a_row_are_done_even_without_runs(tmp_path: Path):
    plan = begun(tmp_path, 0, 3)
    assert len(plan.left()) == len(plan.cells) - 2
    again = a_plan(tmp_path)
    again.check(redo=False)
    assert [cell for cell in again.cells if cell not in again.left()] == [plan.cells[0], plan.cells[3]]


def test_another_setting_is_named_with_what_to_do(tmp_path: Path):
    begun(tmp_path, 0, 1)
    with pytest.raises(UserError) as caught:
        a_plan(tmp_path, epochs=7, limit=100).check(redo=False)
    message = str(caught.value)
    assert "plain, hst: limit: None → 100; epochs: 20 → 7" in message
    assert "--redo" in message
    assert "--out" in message


def test_a_changed_recipe_without_rows_is_no_problem(tmp_path: Path):
    begun(tmp_path, 0)
    only_hst = a_plan(tmp_path, (Block(("hst",), (0.1,), (0,)),), epochs=7)
    only_hst.check(redo=False)
    only_hst.start(redo=False)
    assert stored(tmp_path, "hst").epochs == 7
    assert stored(tmp_path, "plain").epochs == 20


def test_settings_that_are_newer_than_the_stored_recipe_take_their_defaults(tmp_path: Path):
    begun(tmp_path, 0)
    file = tmp_path / "recipes" / "plain.yaml"
    file.write_text("".join(line for line in file.read_text().splitlines(True) if "clip_norm" not in line))
    a_plan(tmp_path).check(redo=False)
    with pytest.raises(UserError, match=r"clip_norm: 10.0 → 3.0"):
        a_plan(tmp_path, clip_norm=3.0).check(redo=False)


def test_the_machine_may_change(tmp_path: Path):
    begun(tmp_path, 0, 1)
    a_plan(tmp_path, threads=7, workers=2).check(redo=False)


def test_redo_drops_the_rows_of_its_cells_at_once(tmp_path: Path):
    plan = begun(tmp_path, 0, 1, 2)
    few = a_plan(tmp_path, (Block(("plain",), (0.1,), (0,)),))
    few.check(redo=True)
    few.start(redo=True)
    again = a_plan(tmp_path)
    assert plan.cells[0] in again.left()
    assert plan.cells[1] not in again.left()
    assert not again.is_finished(plan.cells[0])  # its run is gone too


def test_redo_with_other_settings_must_cover_all_rows_of_the_method(tmp_path: Path):
    begun(tmp_path, 0, 3)  # plain with seeds 0 and 1
    one = (Block(("plain",), (0.1,), (0,)),)
    with pytest.raises(UserError, match="1 rows of plain were made with other settings"):
        a_plan(tmp_path, one, epochs=7).check(redo=True)
    a_plan(tmp_path, epochs=7).check(redo=True)


def test_word_vectors_may_lie_elsewhere_but_must_be_the_same(tmp_path: Path):
    for place, content in (("here", "a 1 2"), ("there", "a 1 2"), ("other", "a 1 3")):
        write_text(tmp_path / place / "words.txt", content)
    begun(tmp_path / "sweep", 0, words=str(tmp_path / "here" / "words.txt"))
    kept = stored(tmp_path / "sweep", "plain").words
    assert kept is not None
    assert kept.startswith("words.txt sha256:")
    there = a_plan(tmp_path / "sweep", words=str(tmp_path / "there" / "words.txt"))
    there.check(redo=False)
    assert there.recipe(there.cells[0]).words == str(tmp_path / "there" / "words.txt")
    with pytest.raises(UserError, match=r"words: words.txt sha256:\w+ → words.txt sha256:\w+"):
        a_plan(tmp_path / "sweep", words=str(tmp_path / "other" / "words.txt")).check(redo=False)
    with pytest.raises(UserError, match="there is no such file"):
        a_plan(tmp_path / "sweep", words=str(tmp_path / "gone.txt"))


def test_the_recipe_hash_of_a_row_does_not_depend_on_where_files_lie(tmp_path: Path):
    hashes = []
    for place in ("here", "there"):
        write_text(tmp_path / place / "words.txt", "a 1 2")
        plan = begun(tmp_path / f"sweep-{place}", 0, words=str(tmp_path / place / "words.txt"))
        hashes.append(plan.rows["recipe_hash"].iloc[0])
    assert hashes[0] == hashes[1]
    without = begun(tmp_path / "without", 0)
    assert without.rows["recipe_hash"].iloc[0] == without.recipe(without.cells[0]).hash() != hashes[0]


def test_an_interrupted_run_is_resumed_only_with_the_same_recipe(tmp_path: Path):
    plan = a_plan(tmp_path)
    cell = plan.cells[0]
    assert not plan.make_ready(cell)
    write_text(plan.run_folder(cell) / "recipe.yaml", plan.recipe(cell).replace(threads=2).to_yaml())
    assert plan.make_ready(cell)
    write_text(plan.run_folder(cell) / "recipe.yaml", plan.recipe(cell).replace(epochs=3).to_yaml())
    assert not plan.make_ready(cell)
    assert not plan.run_folder(cell).exists()
    write_text(plan.run_folder(cell) / "recipe.yaml", "no: recipe")
    assert not plan.make_ready(cell)


def test_only_small_files_stay(tmp_path: Path):
    plan = a_plan(tmp_path)
    finish(plan, 0)
    folder = plan.run_folder(plan.cells[0])
    for name in ("model.safetensors", "labels.json", "history.csv", "log.txt", "checkpoints/a", "logs/b"):
        write_text(folder / name, "")
    plan.tidy(plan.cells[0])
    assert {path.name for path in folder.iterdir()} == {"recipe.yaml", "metrics.json", "history.csv", "log.txt"}


def test_rows_of_methods_that_are_not_in_the_plan_stay(tmp_path: Path):
    begun(tmp_path, 0)
    other = a_plan(tmp_path, (Block(("ssgrl",), (0.1,), (0,)),))
    other.start(redo=True)
    finish(other, 0)
    assert list(a_plan(tmp_path).rows["method"]) == ["plain", "ssgrl"]


def test_settings_of_a_cell_do_not_leak_into_the_next():
    cells = a_plan(Path("nowhere"), (Block(("full_labels", "plain"), (0.1,), (0,)),)).cells
    recipes = [cell_recipe(Recipe(), cell) for cell in cells]
    assert [recipe.known for recipe in recipes] == [1.0, 0.1]
