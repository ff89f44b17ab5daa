import pytest

from fewtags.errors import UserError
from fewtags.report.runs import read_run, read_runs
from tests.report.fabricate import write_run


def test_reads_what_is_there(tmp_path):
    run = read_run(write_run(tmp_path / "a"))
    assert (run.name, run.method, run.known, run.seed, run.map) == ("HST", "hst", 0.1, 0, 61.2)
    assert run.series("threshold/intra").index.tolist() == list(range(1, 13))
    assert run.loss_terms() == ["loss/known", "loss/intra", "loss/cross"]
    assert run.seconds == 83.4


def test_only_metrics_are_required(tmp_path):
    (tmp_path / "metrics.json").write_text('{"mAP": 3.0}')
    run = read_run(tmp_path)
    assert run.method == tmp_path.name
    assert run.known is run.seconds is None
    assert len(run.series("threshold/intra")) == 0


def test_time_is_summed_from_the_epochs_when_not_given(tmp_path):
    assert read_run(write_run(tmp_path / "a", seconds=None)).seconds == pytest.approx(12 * 6.1)


def test_runs_of_one_method_are_told_apart_by_seed_or_folder(tmp_path):
    seeds = [write_run(tmp_path / f"s{seed}", seed=seed) for seed in (0, 1)]
    plain = write_run(tmp_path / "plain", "plain")
    assert [run.name for run in read_runs([*seeds, plain])] == ["HST (seed 0)", "HST (seed 1)", "plain"]
    twice = [write_run(tmp_path / name) for name in ("mean", "max")]
    assert [run.name for run in read_runs(twice)] == ["HST (mean)", "HST (max)"]


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(UserError, match=r"no metrics\.json in it; give the folder of a finished run"):
        read_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("metrics.json", "{not json", r"metrics\.json: not readable as JSON"),
        ("metrics.json", "[1]", r"metrics\.json: holds a list where an object was expected"),
        ("recipe.yaml", "a: [1", r"recipe\.yaml: not readable as YAML"),
        ("history.csv", 'epoch\n1\n"2,3\n', r"history\.csv: not readable as CSV"),
    ],
)
def test_damaged_files_are_named(tmp_path, file, content, message):
    run = write_run(tmp_path / "a")
    (run / file).write_text(content)
    with pytest.raises(UserError, match=message):
        read_run(run)


def test_an_empty_history_is_no_history(tmp_path):
    run = write_run(tmp_path / "a")
    (run / "history.csv").write_text("")
    assert len(read_run(run).history) == 0


def test_a_history_without_epochs_is_numbered(tmp_path):
    run = write_run(tmp_path / "a")
    (run / "history.csv").write_text("loss/known\n0.5\n0.4\n")
    assert read_run(run).series("loss/known").to_dict() == {1: 0.5, 2: 0.4}
