"""`fewtags complete` as a whole: what it knows, what it writes, and what it refuses."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewtags
from fewtags.completion.complete import Wanted, complete, record_audit
from fewtags.completion.figures import BY_A_COIN, MISSING_AT_RANDOM, NO_PROMISE
from fewtags.completion.kept import read_kept
from fewtags.completion.known import what_is_known
from fewtags.completion.suggestions import read_suggestions
from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.labels.hide import hide
from tests.command import fewtags as command
from tests.conftest import COLOURS, TINY, write_colours

ANY = Wanted(precision=0.5, confidence=0.5)
"""So low that even a random backbone fills something."""


def visible_labels(data: Path, known: float = 0.5, seed: int = 0) -> np.ndarray:
    """What the run was given of the training split, by the rule of `--known`."""
    table = pd.read_csv(data / "labels.csv")
    values = np.where(table[table["split"] == "train"].iloc[:, 2:].to_numpy() == 1, 1, -1).astype(np.int8)
    return hide(values, known, seed)


@pytest.fixture(scope="module")
def sure(trained: Path, tmp_path_factory) -> Path:
    """The run with scores of its held-out labels that are right: the random backbone's are not."""
    run = tmp_path_factory.mktemp("sure") / "run"
    shutil.copytree(trained, run)
    held = pd.read_parquet(run / "completion" / "heldout.parquet")
    held.assign(logit=3.0 * held["label"]).to_parquet(run / "completion" / "heldout.parquet")
    return run


@pytest.fixture(scope="module")
def completed(sure: Path, colours: Path, tmp_path_factory) -> tuple[Path, dict]:
    out = tmp_path_factory.mktemp("completed")
    wanted = Wanted(precision=0.5, confidence=0.5, audit=6, csv=True)
    return out, complete(sure, str(colours), out, wanted)


def test_every_hidden_entry_is_suggested_once_and_no_other(completed, colours: Path):
    out, report = completed
    rows = read_suggestions(out / "suggestions.parquet").to_pandas()
    hidden = visible_labels(colours) == 0
    assert report["unknown"] == len(rows) == hidden.sum()
    image, category = np.nonzero(hidden)
    names = list(COLOURS)
    expected = {(f"images/{i:03d}.png", names[c]) for i, c in zip(image, category, strict=True)}
    assert set(zip(rows["image"], rows["category"], strict=True)) == expected
    assert read_suggestions(out / "suggestions.csv").num_rows == len(rows)


def test_labels_csv_holds_the_known_and_the_decided_and_nothing_hidden(completed, colours: Path):
    out, report = completed
    rows = read_suggestions(out / "suggestions.parquet").to_pandas()
    words = {"present": "1", "absent": "0", "unknown": ""}
    decided = {(r.image, r.category): words[r.decision] for r in rows.itertuples()}
    before, after = (pd.read_csv(p / "labels.csv", dtype=str, keep_default_na=False) for p in (colours, out))
    assert list(before.columns) == list(after.columns)
    for one, two in zip(before.itertuples(), after.itertuples(), strict=True):
        for name in COLOURS:
            assert getattr(two, name) == decided.get((one.image, name), getattr(one, name))
    filled = report["filled"]["present"] + report["filled"]["absent"]
    assert filled > 0
    meta = pd.read_parquet(out / "labels.meta.parquet")
    assert len(meta) == filled
    assert (meta["source"] == "completed").all()
    assert (meta["confidence"] >= 0.5).all()


def test_reasons_rest_on_known_labels_and_known_images(completed, colours: Path):
    out, _ = completed
    rows = read_suggestions(out / "suggestions.parquet").to_pandas()
    visible, names = visible_labels(colours), list(COLOURS)
    with_witness = 0
    for row in rows.itertuples():
        image = int(row.image[7:10])
        witnesses = json.loads(row.intra_because)
        assert bool(witnesses) == (not np.isnan(row.intra))
        for reason in witnesses:
            assert visible[image, names.index(reason["category"])] == 1
            assert reason["category"] != row.category
            assert 0 <= reason["p"] <= 1
        assert [reason["p"] for reason in witnesses] == sorted((r["p"] for r in witnesses), reverse=True)
        with_witness += bool(witnesses)
        alike = json.loads(row.cross_because)
        assert len(alike) == 3
        assert all(visible[int(r["image"][7:10]), names.index(row.category)] == 1 for r in alike)
        assert [r["similarity"] for r in alike] == sorted((r["similarity"] for r in alike), reverse=True)
    assert with_witness > 10


def test_the_report_says_what_it_rests_on(completed):
    out, report = completed
    assert json.loads((out / "completion.json").read_text()) == report
    assert report["caveats"] == [BY_A_COIN]
    assert [level["precision"] for level in report["levels"]] == [0.5, 0.8, 0.9, 0.95, 0.99]
    assert {"before", "after"} == set(report["calibration"])
    assert sum(report["origins"].values()) == sum(report["filled"].values())
    assert "coverage_of_score_alone" in report["levels"][0]["present"]
    page = (out / "completion.html").read_text()
    assert page.count("<svg") == 2
    assert "rests on no assumption" in page


def test_audit_is_a_sample_of_what_was_filled(completed):
    out, _ = completed
    rows = read_suggestions(out / "audit.csv").to_pandas()
    assert len(rows) == 6
    assert set(rows["decision"]) <= {"present", "absent"}
    table = pd.read_csv(out / "audit.csv")
    assert table["answer"].isna().all()
    table["answer"] = ["yes"] * 6
    table.to_csv(out / "answered.csv", index=False)
    found = record_audit(out / "answered.csv", out, 0.9)
    assert found["present"]["right"] == found["present"]["answered"] == (rows["decision"] == "present").sum()
    assert json.loads((out / "completion.json").read_text())["audit"] == found


def test_hidden_labels_never_reach_the_suggestions(sure: Path, colours: Path, tmp_path: Path):
    """Turned around, they leave every file as it was to the last byte."""
    data = tmp_path / "colours"
    data.mkdir()
    (data / "images").symlink_to(colours / "images")
    table = pd.read_csv(colours / "labels.csv")
    values = table.iloc[:, 2:].to_numpy()
    train = (table["split"] == "train").to_numpy()
    hidden = np.zeros(values.shape, bool)
    hidden[train] = visible_labels(colours) == 0
    outs = []
    run = _moved(sure, tmp_path / "run", data)
    for name, labels in (("before", values), ("after", np.where(hidden, 1 - values, values))):
        table.iloc[:, 2:] = labels
        table.to_csv(data / "labels.csv", index=False)
        complete(run, str(data), tmp_path / name, ANY)
        outs.append(tmp_path / name)
    for file in ("suggestions.parquet", "labels.csv", "completion.json", "labels.meta.parquet"):
        assert (outs[0] / file).read_bytes() == (outs[1] / file).read_bytes(), file


def _moved(run: Path, copy: Path, data: Path) -> Path:
    """The run as if it had been trained on `data`."""
    shutil.copytree(run, copy)
    labels = json.loads((copy / "labels.json").read_text())
    (copy / "labels.json").write_text(json.dumps(labels | {"data": str(data)}))
    return copy


def test_what_the_run_hid_is_known_only_if_asked_for(trained: Path, colours: Path):
    tagger, kept = fewtags.load(trained), read_kept(trained)
    table = open_data(str(colours)).table
    visible = visible_labels(colours)
    known = what_is_known(table, str(colours), tagger, kept.held)
    assert np.array_equal(known.to_fill[:48], visible == 0)
    assert not known.to_fill[48:].any()
    assert known.at_random
    held = np.zeros(visible.shape, bool)
    held[[int(name[7:10]) for name in kept.held.image], kept.held.entries.category] = True
    assert held.sum() == len(kept.held.image) > 0
    assert np.array_equal(known.labels[:48], np.where(held, 0, visible))
    everything = what_is_known(table, str(colours), tagger, kept.held, use_hidden=True)
    assert not everything.to_fill.any()
    with pytest.raises(UserError, match="no label is unknown"):
        complete(trained, str(colours), colours.parent / "none", Wanted(use_hidden=True))


def test_data_that_changed_since_training_is_refused(trained: Path, colours: Path, tmp_path: Path):
    data = tmp_path / "fewer"
    data.mkdir()
    (data / "images").symlink_to(colours / "images")
    lines = (colours / "labels.csv").read_text().splitlines()
    (data / "labels.csv").write_text("\n".join([lines[0], *lines[10:]]) + "\n")
    run = _moved(trained, tmp_path / "run", data)
    with pytest.raises(UserError, match=r"labels have changed since the run was trained.*--use-hidden"):
        complete(run, str(data), tmp_path / "out", ANY)


def test_new_images_with_some_labels_known(trained: Path, tmp_path: Path):
    data = write_colours(tmp_path / "new", train=12, test=4, seed=9, unknown=0.6)
    table = pd.read_csv(data / "labels.csv", dtype=str, keep_default_na=False)
    table = table.drop(columns="blue").assign(other="")
    table.to_csv(data / "labels.csv", index=False)
    report = complete(
        trained, str(data), tmp_path / "out", Wanted(precision=0.5, confidence=0.5, prior="estimate")
    )
    rows = read_suggestions(tmp_path / "out" / "suggestions.parquet").to_pandas()
    assert set(rows["category"]) == {"red", "green", "yellow"}  # neither what the data nor what the run lacks
    assert report["unknown"] == (table[["red", "green", "yellow"]] == "").to_numpy().sum()
    assert report["caveats"][0] == MISSING_AT_RANDOM
    asked = (table[["red", "green", "yellow"]] == "").any(axis=1).sum()
    assert report["caveats"][1].startswith(f"{asked} of the images were not trained on")
    assert set(report["prior"]["rates"]) == set(COLOURS)
    lines = (tmp_path / "out" / "labels.csv").read_text().splitlines()
    assert lines[0] == "image,split,red,green,yellow,other"


def test_plain_has_no_evidence_and_holdout_0_no_promise(colours: Path, tmp_path: Path):
    run = fewtags.train(colours, out=tmp_path / "run", method="plain", known=0.5, holdout=0.0, **TINY)
    with pytest.raises(UserError, match=r"held no label out of training.*--holdout 0.1.*leave --precision out"):
        complete(run, str(colours), tmp_path / "out", Wanted(precision=0.9))
    report = complete(run, str(colours), tmp_path / "out")
    assert report["caveats"] == [NO_PROMISE]
    assert report["precision"] is None
    assert report["calibration"] is None
    rows = read_suggestions(tmp_path / "out" / "suggestions.parquet").to_pandas()
    assert len(rows) == report["unknown"]
    assert np.allclose(rows["probability"], rows["score"])
    assert rows["intra"].isna().all()
    assert rows["cross"].isna().all()
    assert (rows["cross_because"] == "[]").all()
    least = float(rows["probability"].median())
    complete(run, str(colours), tmp_path / "fewer", Wanted(min_probability=least))
    fewer = read_suggestions(tmp_path / "fewer" / "suggestions.parquet").to_pandas()
    assert len(fewer) == pytest.approx((rows["probability"] >= least).sum(), abs=1)
    assert (fewer["probability"] >= least - 1e-6).all()


def test_errors_before_anything_is_written(trained: Path, colours: Path, tmp_path: Path):
    with pytest.raises(UserError, match=r"--precision 1.0: it is at least 0.5 and below 1"):
        complete(trained, str(colours), tmp_path / "out", Wanted(precision=1.0))
    with pytest.raises(UserError, match="choose another folder than DATA"):
        complete(trained, str(colours), colours, ANY)
    old = tmp_path / "old"
    old.mkdir()
    with pytest.raises(UserError, match=r"keeps nothing for completing labels.*train it again"):
        read_kept(old)
    (old / "completion").mkdir()
    (old / "completion" / "scale.json").write_text("{}")
    with pytest.raises(UserError, match="damaged or not written by fewtags"):
        read_kept(old)
    assert not (tmp_path / "out").exists()


def test_command_line(trained: Path, colours: Path, tmp_path: Path):
    answer = command("complete", trained, colours, "--out", tmp_path / "out", "--precision", 0.95)
    assert answer.returncode == 0, answer.stderr
    text = " ".join(answer.stdout.split())
    assert "not enough labels for 0.95; reachable:" in text
    assert "0.95 needs at least 59 faultless held-out acceptances" in text
    assert "Calibration error (ECE)" in text
    answer = command(
        "complete", trained, colours, "--out", tmp_path / "out", "--audit-result", tmp_path / "no.csv"
    )
    assert answer.returncode == 2
    assert "there is no such file" in answer.stderr
