"""Jobs in processes of their own: what they return, how they fail, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fewtags.benchmark.pool import Ended, Pool, describe
from fewtags.errors import UserError
from fewtags.recipe import Recipe
from tests.conftest import TINY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def recipe(**settings) -> dict:
    return Recipe(**(TINY | {"method": "plain", "freeze_backbone": True} | settings)).model_dump(mode="json")


def endless(colours: Path, folder: Path) -> dict:
    settings = {"data": str(colours), "tokens": None, "recipe": recipe(epochs=10**6), "resume": False}
    return {**settings, "folder": str(folder), "log": folder / "log.txt"}


def wait_for(condition, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture(scope="module")
def pool():
    with Pool(threads=1) as pool:
        yield pool


def test_steps_and_features_are_measured(pool: Pool):
    seconds = pool.call("measure_step", recipe=recipe(method="hst", known=0.5), categories=5)
    assert 0 < seconds < 5
    trained = recipe(method="plain", freeze_backbone=False)
    assert 0 < pool.call("measure_step", recipe=trained, categories=5) < 5
    view = pool.call("measure_features", recipe=recipe(), threads=1)
    assert view["bytes"] % 2 == 0
    assert view["bytes"] > 0
    assert view["seconds"] > 0


def test_frozen_stages_are_cached_and_measured_too(colours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FEWTAGS_CACHE", str(tmp_path))
    stages = recipe(method="plain", freeze_backbone=False, cache_frozen_stages=True)
    with Pool(threads=1) as pool:
        assert 0 < pool.call("measure_step", recipe=stages, categories=5) < 5
        whole, frozen = (pool.call("measure_features", recipe=asked, threads=1) for asked in (recipe(), stages))
        assert whole["bytes"] != frozen["bytes"]
        pool.call("prepare", data=str(colours), tokens=None, recipe=stages, threads=1)
    cached = {file.stem.rpartition("-")[0] for file in tmp_path.glob("*.npy")}
    assert cached == {"test_resnet-until-layer3.0"}


def test_a_users_mistake_comes_back_as_one(pool: Pool):
    with pytest.raises(UserError, match="no such folder"):
        pool.call("prepare", data="nowhere", tokens=None, recipe=recipe(), threads=1)


def test_a_fault_is_told_and_logged_in_full(pool: Pool, tmp_path: Path):
    job = pool.start("measure_step", log=tmp_path / "log.txt", recipe=recipe(), categories=-1)
    (ended,) = pool.wait() or pool.wait()
    assert (ended.job, ended.exit) == (job, 1)
    assert "ValueError" in describe(ended)
    assert "Traceback" in (tmp_path / "log.txt").read_text()


def test_a_killed_job_is_told_apart(pool: Pool, colours: Path, tmp_path: Path):
    pool.start("cell", **endless(colours, tmp_path / "run"))
    assert wait_for(lambda: (tmp_path / "run" / "history.csv").is_file())
    (job,) = children(pool.process.pid)
    os.kill(job, signal.SIGKILL)
    (ended,) = pool.wait()
    assert describe(ended) == "killed by SIGKILL; was there enough memory?"
    assert pool.call("measure_features", recipe=recipe(), threads=1)["bytes"] > 0  # the others go on


def test_without_the_process_that_starts_them_jobs_end_and_new_ones_start(colours: Path, tmp_path: Path):
    with Pool(threads=1) as pool:
        number = pool.start("cell", **endless(colours, tmp_path / "run"))
        assert wait_for(lambda: (tmp_path / "run" / "history.csv").is_file())
        (job,) = children(pool.process.pid)
        os.kill(pool.process.pid, signal.SIGKILL)
        (ended,) = pool.wait()
        assert (ended.job, ended.exit) == (number, -9)
        assert wait_for(lambda: is_gone(job))
        assert pool.call("measure_features", recipe=recipe(), threads=1)["bytes"] > 0


def test_jobs_end_with_a_sweep_that_is_killed(colours: Path, tmp_path: Path):
    """Nobody gets to tidy up then: the end of the pipe has to do."""
    settings = endless(colours, tmp_path / "run")
    log = settings.pop("log")
    code = (
        "import sys; from pathlib import Path; from fewtags.benchmark.pool import Pool; pool = Pool(1); "
        f"pool.start('cell', log=Path({str(log)!r}), **{settings!r}); print(pool.process.pid, flush=True); "
        "pool.wait()"
    )
    sweep = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert sweep.stdout is not None
    worker = int(sweep.stdout.readline())
    assert wait_for(lambda: (tmp_path / "run" / "history.csv").is_file())
    (job,) = children(worker)
    sweep.kill()
    sweep.communicate()
    assert wait_for(lambda: is_gone(worker) and is_gone(job), 10)


def test_exits_in_words():
    assert describe(Ended(0, -11)) == "killed by SIGSEGV"
    assert describe(Ended(0, 3)) == "ended with exit code 3"
    assert describe(Ended(0, 2, error="no such folder")) == "no such folder"
