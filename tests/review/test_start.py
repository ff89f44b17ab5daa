"""The command as a user runs it, with a trained run: attention, suggestions, the page, export."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fewtags.completion.suggestions import write_suggestions
from fewtags.data import open_data
from fewtags.errors import UserError
from fewtags.review import start
from fewtags.review.attention import AttentionMaps, NoAttentionError, scaled
from fewtags.review.filters import Filters
from fewtags.review.queue import OPEN, YES
from fewtags.review.security import Policy
from tests.conftest import COLOURS, TINY
from tests.review.browser import free_port
from tests.review.fabricate import suggestion_table


def maps_of(run: Path, data: Path) -> AttentionMaps:
    opened = open_data(str(data))
    return AttentionMaps(run, opened.images, opened.table.images, [*opened.table.categories, "cow"])


def test_attention_of_a_trained_run(trained: Path, colours: Path):
    import torch

    from fewtags.predict import load

    maps = maps_of(trained, colours)
    grid = np.array(maps.grid(3, 2))
    tagger, data = load(trained), open_data(str(colours))
    (outputs,) = tagger.outputs([data.images.open(data.table.images[3])])
    assert isinstance(outputs["attention"], torch.Tensor)
    assert grid == pytest.approx(scaled(outputs["attention"][0, 2].numpy()), abs=0.02)
    assert grid.min() == 0
    assert grid.max() in (0, 1)
    with pytest.raises(NoAttentionError, match="does not know the category 'cow'"):
        maps.grid(3, len(COLOURS))


def test_plain_has_no_attention(colours: Path, tmp_path: Path):
    import fewtags as package

    run = package.train(colours, out=tmp_path / "plain", method="plain", **{**TINY, "epochs": 1})
    maps = maps_of(run, colours)
    maps.warm_up()
    with pytest.raises(NoAttentionError, match="plain has no attention"):
        maps.grid(0, 0)


def test_a_run_that_is_gone_is_told_when_a_map_is_asked_for(colours: Path, tmp_path: Path):
    maps = maps_of(tmp_path / "gone", colours)
    maps.warm_up()
    with pytest.raises(UserError, match="no such run folder"):
        maps.grid(0, 0)


@pytest.fixture
def suggestions(colours: Path, tmp_path: Path) -> Path:
    images = open_data(str(colours)).table.images[:6]
    rows = [{"image": image, "category": "red", "probability": 0.1 * n} for n, image in enumerate(images)]
    write_suggestions(suggestion_table(rows), tmp_path / "made" / "suggestions.parquet")
    return tmp_path / "made"


def call(address: str, body: dict | None = None) -> dict:
    headers = {"Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address, data, headers), timeout=30) as answer:
        return json.load(answer)


def wait_for(port: int, process: subprocess.Popen) -> None:
    for _ in range(600):
        assert process.poll() is None, process.communicate()
        try:
            call(f"http://127.0.0.1:{port}/api/setup")
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the page did not come up")


def test_review_answers_and_exports(trained: Path, colours: Path, suggestions: Path, tmp_path: Path):
    port = free_port()
    words = ["review", trained, colours, "--suggestions", suggestions, "--no-open", "--port", port]
    process = subprocess.Popen(
        [sys.executable, "-m", "fewtags", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    wait_for(port, process)
    base = f"http://127.0.0.1:{port}/api"
    item = call(f"{base}/next?order=confident")["items"][0]
    body = {"image": item["image"], "category": "red", "answer": "no", "tab": "test", "request": "request-1"}
    assert call(f"{base}/answers", body)["state"] == "no"
    assert len(call(f"{base}/attention/0/0")["grid"]) >= 1
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    place = start.find_place(trained, str(colours), suggestions, None, None, Console(quiet=True))
    said = Console(record=True, width=400)
    start.export(place, tmp_path / "labels.csv", said)
    assert "1 label answered by people" in (text := said.export_text())
    assert "To train on it: put it and labels.meta.parquet into" in text


def test_from_a_run_to_labels_without_any_file_in_between(trained: Path, colours: Path, tmp_path: Path):
    """Suggestions are made when there are none; what a person answers is in the labels that training reads."""
    run, quiet = Path(shutil.copytree(trained, tmp_path / "run")), Console(quiet=True)
    place = start.find_place(run, str(colours), None, None, None, quiet)
    assert place.suggestions == run / "suggestions" / "suggestions.parquet"
    hidden = place.known.values == 0
    assert hidden.any()
    review = start.make_parts(place, "value", quiet).review
    assert len(review.index) == hidden.sum()
    item = review.next(Filters(), "value", [OPEN], 1, "a")[0]
    review.answer(item["image"], item["category"], YES, "a", "request-1")
    review.decisions.close()
    place.export(tmp_path / "data" / "reviewed.csv")
    shutil.copytree(colours / "images", tmp_path / "data" / "images")
    table = open_data(str(tmp_path / "data" / "reviewed.csv")).table
    entry = table.images.index(item["image"]), table.categories.index(item["category"])
    assert (table.values[entry], table.source[entry]) == (1, "human")
    given = ~hidden
    assert (table.values[given] == place.known.values[given]).all()


def test_what_is_missing_is_told(trained: Path, colours: Path, suggestions: Path, tmp_path: Path):
    quiet = Console(quiet=True)
    with pytest.raises(UserError, match="no such run folder"):
        start.find_place(tmp_path / "gone", str(colours), None, None, None, quiet)
    with pytest.raises(UserError, match=r"--suggestions .*no such file"):
        start.find_place(trained, str(colours), tmp_path / "gone.parquet", None, None, quiet)
    place = start.find_place(trained, str(colours), suggestions, None, None, quiet)
    with pytest.raises(UserError, match="nothing is answered yet"):
        start.export(place, tmp_path / "x.csv", quiet)
    with pytest.raises(UserError, match="--order best"):
        start.serve(place, "best", Policy(), False, quiet)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match="Choose another with --port"):
            start.serve(place, "value", Policy(port=taken.getsockname()[1]), False, quiet)


def test_the_newest_suggestions_of_a_run_are_taken(tmp_path: Path):
    for name, age in (("old", 100), ("new", 0)):
        write_suggestions(suggestion_table([]), tmp_path / name / "suggestions.parquet")
        then = time.time() - age
        os.utime(tmp_path / name / "suggestions.parquet", (then, then))
    assert start.suggestions_file(tmp_path, None) == tmp_path / "new" / "suggestions.parquet"
    assert start.suggestions_file(tmp_path / "nothing", None) is None


def test_addresses():
    assert start.page_address(Policy()) == "http://127.0.0.1:8765/"
    assert start.page_address(Policy("::1")) == "http://[::1]:8765/"
    assert start.page_address(Policy("0.0.0.0", 1, "a-secret-of-20-chars")).endswith(
        "/?token=a-secret-of-20-chars"
    )
