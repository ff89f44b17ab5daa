"""`fewtags reproduce RUN` as a user runs it: the same run, changed data, a changed recipe, other versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import fewtags
from fewtags.cli import app
from fewtags.reproduction.inputs import Inputs
from fewtags.reproduction.outcome import Outcome, WeightDifference, compare_runs
from fewtags.reproduction.record import read_record
from fewtags.reproduction.reproduce import Report, score_gap
from fewtags.reproduction.terminal import verdict
from fewtags.training.folder import RunFolder
from tests.command import fewtags as command
from tests.conftest import TINY, write_colours

NOT_REPRODUCED = 3


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_colours(tmp_path_factory.mktemp("reproduced") / "data", train=32, test=8)


@pytest.fixture(scope="module")
def original(data: Path) -> Path:
    settings = TINY | {"epochs": 2, "seed": 3}
    return fewtags.train(data, out=data.parent / "run", method="hst", known=0.5, **settings)


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    shutil.copytree(original, tmp_path / "run")
    return tmp_path / "run"


def reproduce(*arguments: object) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    return answer.exit_code, " ".join(answer.output.split())


def edit_record(run: Path, change: Any) -> None:
    path = run / "record.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_a_run_records_where_it_came_from(original: Path):
    record = read_record(original)
    assert record is not None
    assert record.environment.versions["fewtags"] == fewtags.__version__
    assert {"python", "torch", "numpy", "timm"} <= record.environment.versions.keys()
    assert record.environment.threads == 1
    assert record.environment.machine["device"] == "cpu"
    recipe = RunFolder(original).recipe()
    assert (record.seed, record.recipe_hash) == (3, recipe.hash())
    assert record.recipe == recipe.model_dump(mode="json")


def test_the_same_run_is_reproduced_bit_for_bit(original: Path, tmp_path: Path):
    """In another process, with features computed anew."""
    answer = command("reproduce", original, "--new-features", "--out", tmp_path / "again")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "Weights: the same to the last bit" in answer.stdout
    assert answer.stdout.strip().endswith("Reproduced bit for bit.")
    assert RunFolder(tmp_path / "again").metrics()["mAP"] == RunFolder(original).metrics()["mAP"]


def test_data_that_moved_are_the_same_and_a_changed_label_is_named(run: Path, data: Path, tmp_path: Path):
    moved = tmp_path / "moved"
    shutil.copytree(data, moved)
    code, said = reproduce(run, moved, "--check-only")
    assert code == 0
    assert "Data: the same" in said
    assert "was not trained again" in said
    lines = (moved / "labels.csv").read_text().splitlines()
    cells = lines[1].split(",")
    lines[1] = ",".join([*cells[:3], "0" if cells[3] == "1" else "1", *cells[4:]])
    (moved / "labels.csv").write_text("\n".join(lines) + "\n")
    code, said = reproduce(run, moved)
    assert code == NOT_REPRODUCED
    assert "1 label differs: images/000.png green (was" in said
    assert "NOT reproduced: it cannot be" in said


def test_another_seed_in_the_recipe_is_named(run: Path):
    recipe = yaml.safe_load((run / "recipe.yaml").read_text())
    (run / "recipe.yaml").write_text(yaml.safe_dump(recipe | {"seed": 4}))
    code, said = reproduce(run)
    assert code == NOT_REPRODUCED
    assert "Recipe: 1 different - seed: 3 when trained, 4 in recipe.yaml" in said
    assert "Weights" not in said
    code, said = reproduce(run, "--anyway", "--tolerance", 100)
    assert code == NOT_REPRODUCED
    assert "NOT reproduced: what went in is different." in said
    assert "tensors differ, by at most" in said
    assert "Training: the same until epoch 1, which differs" in said


def test_a_record_that_agrees_with_a_tampered_recipe_is_found_by_the_result(run: Path):
    recipe = yaml.safe_load((run / "recipe.yaml").read_text())
    (run / "recipe.yaml").write_text(yaml.safe_dump(recipe | {"head_lr": 2e-3}))
    edit_record(run, lambda record: record["recipe"].update(head_lr=2e-3))
    code, said = reproduce(run)
    assert code == NOT_REPRODUCED
    assert "NOT reproduced: the same data and recipe gave another result." in said


def test_another_version_is_a_warning_and_the_result_decides(run: Path):
    edit_record(run, lambda record: record["environment"]["versions"].update(torch="1.0.0"))
    code, said = reproduce(run)
    assert code == 0
    assert "torch: 1.0.0 when trained" in said
    assert "Reproduced bit for bit." in said


def test_labels_hidden_otherwise_are_said(run: Path):
    edit_record(run, lambda record: record.update(known="0" * 16))
    code, said = reproduce(run, "--check-only")
    assert code == NOT_REPRODUCED
    assert "hides or holds out other labels" in said


def test_json_for_programs(run: Path):
    answer = CliRunner().invoke(app, ["reproduce", str(run), "--check-only", "--json"])
    assert answer.exit_code == 0, answer.output
    said = json.loads(answer.stdout)
    assert said["reproduced"] is None
    assert (said["data"], said["recipe"], said["repeated"]) == ([], [], None)


def test_a_tolerance_is_about_scores():
    weights = WeightDifference(tensors=9, different=3, largest=0.1, where="w")
    outcome = Outcome(weights, {"mAP": (40.0, 40.4), "OF1": (30.0, 29.7), "pseudo.made": (10, 900)}, first_epoch=1)
    same, changed = Inputs(True, [], [], []), Inputs(True, [], ["seed"], [])
    assert score_gap(outcome) == pytest.approx(0.4)
    assert [Report(same, outcome, points).reproduced for points in (0.0, 0.3, 0.5)] == [False, False, True]
    assert verdict(Report(same, outcome, 0.5)) == "Reproduced within 0.5 points."
    assert Report(changed, outcome, 0.5).reproduced is False
    gone = Outcome(weights, {"mAP": (40.0, None)}, None)
    assert Report(same, gone, 100.0).reproduced is False


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: (run / "metrics.json").unlink(), "training has not finished"),
        (lambda run: (run / "data.parquet").unlink(), "data.parquet: missing"),
        (lambda run: (run / "record.json").write_text("{}"), "record.json: damaged"),
    ],
)
def test_what_is_missing_is_the_users_mistake(run: Path, spoil: Any, message: str):
    spoil(run)
    with pytest.raises(fewtags.UserError, match=message):
        CliRunner().invoke(app, ["reproduce", str(run)], catch_exceptions=False)


def test_a_run_without_a_record_is_compared_by_its_result(run: Path):
    (run / "record.json").unlink()
    code, said = reproduce(run)
    assert code == 0
    assert "Data: not recorded" in said
    assert "Reproduced bit for bit." in said


def test_a_resumed_run_keeps_its_record(run: Path, data: Path, monkeypatch: pytest.MonkeyPatch):
    """And notes that it went on with something else."""
    before = read_record(run)
    assert before is not None
    (run / "metrics.json").unlink()
    monkeypatch.setattr("fewtags.reproduction.environment.LIBRARIES", ("torch",))
    fewtags.train(data, out=run, resume=True)
    after = read_record(run)
    assert after is not None
    assert after.model_copy(update={"resumed": []}) == before
    assert len(after.resumed) == 1
    code, said = reproduce(run)
    assert (code, "it was resumed with other versions" in said) == (0, True)


@pytest.mark.parametrize("method", ["hst_fb", "curriculum"])
def test_no_step_lacks_a_deterministic_algorithm(
    method: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
):
    """torch only warns where it has none; on a CPU it has one for all that is used."""
    fewtags.train(data, out=tmp_path / "run", method=method, known=0.5, **(TINY | {"epochs": 2}))
    assert [str(warning.message) for warning in recwarn if "determin" in str(warning.message)] == []


def test_loader_processes_change_nothing(data: Path, tmp_path: Path):
    """Each random view has its own seed, whichever process makes it."""
    tuned = TINY | {"freeze_backbone": False, "epochs": 2, "backbone_lr": 1e-3}
    runs = [
        fewtags.train(data, out=tmp_path / str(workers), method="plain", workers=workers, **tuned)
        for workers in (0, 2)
    ]
    assert compare_runs(*map(RunFolder, runs)).identical


def test_a_new_run_does_not_keep_the_record_of_an_old_one(run: Path, data: Path):
    (run / "recipe.yaml").unlink()  # so it is no run any more, and another may be trained there
    fewtags.train(data, out=run, method="plain", known=0.5, **(TINY | {"epochs": 1, "seed": 5}))
    record = read_record(run)
    assert record is not None
    assert (record.seed, record.recipe["method"], record.resumed) == (5, "plain", [])
