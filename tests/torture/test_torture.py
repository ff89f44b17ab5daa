"""Eight seeded kills, and the other faults a command may meet; `make torture` kills a hundred times."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.nursery import Job, Nursery
from tests.torture.__main__ import KILLS, into_page, summary
from tests.torture.cases import Benchmark, Caching, Case, Complete, Train, Workshop
from tests.torture.disks import remount, small_disk
from tests.torture.files_left import passing, unreadable
from tests.torture.kills import Tally, torture
from tests.torture.reviewing import Review


class FewerCells(Benchmark):
    methods = "plain"


FEW = {Train: (2, 177), Caching: (1, 4), Complete: (2, 3), FewerCells: (1, 4), Review: (2, 61)}
"""Kills, and the seed of their moments: such that there is something to lose by then."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    nursery = Nursery()
    yield Workshop(tmp_path_factory.mktemp("torture"), nursery)
    nursery.close()


def until(happened: Callable[[], object], job: Job) -> None:
    for _ in range(2000):
        if happened():
            return
        assert job.wait(0) is None, job.said()
        time.sleep(0.02)
    raise AssertionError(job.said())


@pytest.mark.parametrize("kind", FEW, ids=lambda kind: kind.__name__)
def test_a_killed_command_goes_on_and_ends_the_same(kind: type[Case], shop: Workshop, tmp_path: Path):
    kills, seed = FEW[kind]
    tally = torture(kind(shop), tmp_path, kills, seed)
    assert not tally.faults
    assert tally.kills == kills
    assert tally.files > 0


def test_there_are_eight_kills_here_and_a_hundred_in_all():
    assert sum(kills for kills, _ in FEW.values()) == 8
    assert sum(KILLS.values()) >= 100
    assert {kind.name for kind in KILLS} == {kind.name for kind in FEW}


def test_the_page_gets_its_table_and_keeps_the_rest(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- torture: begin -->\nold\n<!-- torture: end -->\nafter\n")
    tallies = [Tally("train", 2.0, 30, 12, 11, 1234), Tally("review", 1.0, 20, 0, 9, 100, ["lost: an answer"])]
    into_page(page, summary(tallies, seed=7, minutes=3.2))
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1], "old" in lines) == ("before", "after", False)
    assert "| train | 2.0 s | 30 | 12 | 11 | 1,234 | 0 |" in lines
    assert "| **all** |  | 50 | 12 | 20 | 1,334 | 1 |" in lines


def test_what_is_half_written_is_noticed(shop: Workshop, tmp_path: Path):
    """The check itself: each kind of file, cut in half, is found; drafts are left to the next command."""
    names = ("model.safetensors", "metrics.json", "report.html", "completion/heldout.parquet", "examples/0.png")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        content = (shop.run / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
    (tmp_path / ".model.draft.safetensors").write_bytes(b"half")
    assert {line.partition(":")[0] for line in unreadable(tmp_path)} == set(names)
    assert [path.name for path in passing(tmp_path)] == [".model.draft.safetensors"]
    assert not unreadable(shop.run)


def test_a_full_disk_and_then_room_again(shop: Workshop, tmp_path: Path):
    case = Train(shop)
    with small_disk(tmp_path / "disk", kilobytes=240) as disk:
        job = shop.start(case.arguments(disk), tmp_path)
        assert job.finish() == 2, job.said()
        assert "cannot be written, because the disk is full; make room there" in job.said()
        assert "Traceback" not in job.said()
        assert not unreadable(disk / "run")
        assert (disk / "run" / "recipe.yaml").is_file()
        remount(disk, "size=20m")
        job = shop.start(case.arguments(disk), tmp_path)
        assert job.finish() == 0, job.said()
        assert case.results(disk) == case.results(shop.folder)


def test_a_folder_that_can_only_be_read(shop: Workshop, tmp_path: Path):
    with small_disk(tmp_path / "disk", kilobytes=4000) as disk:
        remount(disk, "ro")
        for case in (Train(shop), Complete(shop)):
            command = (
                [*case.arguments(disk)[:-1], disk / "run"] if isinstance(case, Train) else case.arguments(disk)
            )
            job = shop.start(command, tmp_path)
            assert job.finish() == 2, job.said()
            assert "cannot be written, because the disk can only be read; choose another place" in job.said()
            assert "Traceback" not in job.said()
            assert "Training on" not in job.said()  # said before any work is done


def test_a_process_that_loads_images_is_killed(shop: Workshop, tmp_path: Path):
    out = tmp_path / "run"
    flags = ["--train-backbone", "--set", "workers=1", "--set", "trained_stages=1", "--method", "plain"]
    command = ["train", shop.data, "--recipe", shop.recipe, *flags, "--out", out]
    job = shop.start([*command, "--epochs", "400"], tmp_path)
    until(lambda: list((out / "checkpoints").glob("epoch-*")), job)
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    while job.wait(0.5) is None:  # one that has done its part of an epoch already is not missed
        with contextlib.suppress(OSError, IndexError):
            os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    assert job.finish() == 2, job.said()
    assert "a process that loads images was ended from outside" in job.said()
    assert "Traceback" not in job.said()
    assert not unreadable(out)
    epochs = Train(shop).progress(tmp_path)
    job = shop.start(["train", shop.data, "--out", out, "--resume"], tmp_path)
    until(lambda: Train(shop).progress(tmp_path) > epochs, job)
    job.kill()
    assert job.finish() == -signal.SIGKILL


def test_ctrl_c_once_stops_and_twice_ends_at_once(shop: Workshop, tmp_path: Path):
    case, run = Train(shop), tmp_path / "run"
    command = [*case.arguments(tmp_path), "--epochs", "100000"]
    job = shop.start(command, tmp_path, stops_slowly=True)
    until(lambda: case.progress(tmp_path) > 1, job)
    job.kill(signal.SIGINT)
    assert job.wait(0.5) is None  # it takes its time
    job.kill(signal.SIGINT)
    assert job.finish() == -signal.SIGINT
    assert not unreadable(run)
    epochs = case.progress(tmp_path)
    job = shop.start(["train", shop.data, "--out", run, "--resume"], tmp_path)
    until(lambda: case.progress(tmp_path) > epochs + 1, job)
    job.kill(signal.SIGINT)
    assert job.finish() == 130, job.said()
    assert f"Continue with: fewtags train {shop.data} --out {run} --resume" in job.said()
    assert f"epoch {epochs + 1}/100000" in job.said()
    assert "epoch 1/" not in job.said()
    assert not passing(run)


def test_two_trainings_in_one_folder(shop: Workshop, tmp_path: Path):
    case, run = Train(shop), tmp_path / "run"
    first = shop.start([*case.arguments(tmp_path), "--epochs", "100000"], tmp_path / "first")
    until(lambda: (run / ".lock.holder").is_file(), first)
    second = shop.start(case.arguments(tmp_path), tmp_path / "second")
    assert second.finish() == 2, second.said()
    words = f"another `fewtags train` is running there (process {first.pid}); wait for it, or end it with `kill"
    assert f"{run}: {words} {first.pid}`, or choose another --out" in second.said()
    until(lambda: case.progress(tmp_path) > 0, first)
    first.kill()
    assert first.finish() == -signal.SIGKILL
    third = shop.start(["train", shop.data, "--out", run, "--resume"], tmp_path / "third")
    until(lambda: json.loads((run / ".lock.holder").read_text())["pid"] == third.pid, third)
    third.kill()
    third.finish()
