"""The command itself: a process that serves an exported file without torch, and ends well."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import fewtags
from fewtags.errors import UserError
from fewtags.serve import run
from fewtags.serve.run import check_installed, check_token, is_loopback, opening_lines, taken_port
from tests.command import fewtags as command

WITHOUT_TORCH = """
import sys
sys.modules.update(dict.fromkeys(["torch", "torchvision", "timm", "lightning", "pandas", "sklearn"]))
from fewtags.cli import main
main()
"""


@contextmanager
def process(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server and its address; killed if it is still there at the end."""
    started = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_TORCH, "serve", *map(str, arguments), "--port", "0", "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert started.stdout is not None
        line = started.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, (line, started.stderr and started.stderr.read())
        yield started, found.group()
    finally:
        started.kill()
        started.wait()


def ready(address: str) -> dict:
    for _ in range(600):
        try:
            answer = httpx2.get(f"{address}/health")
            if answer.status_code == 200:
                return answer.json()
        except httpx2.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("never ready")


def test_an_exported_file_is_served_without_torch_and_what_is_queued_is_finished(
    trained: Path, exported: Path, colours: Path
):
    images = sorted((colours / "images").iterdir())[:4]
    expected = fewtags.load(trained).predict(images, threshold=0.0)
    slow = ["--max-wait-ms", 4000, "--max-batch", 5]  # four images wait that long for a fifth
    with process(exported, *slow, "--token", "geheim") as (server, address):
        assert address.startswith("http://127.0.0.1:")
        assert ready(address)["runtime"].startswith("onnxruntime")
        assert httpx2.get(f"{address}/categories").status_code == 401
        answers: list[httpx2.Response] = []
        asking = threading.Thread(target=lambda: answers.append(post(address, images)))
        asking.start()
        wait_for_images(address)
        server.send_signal(signal.SIGTERM)
        asking.join(30)
        assert server.wait(30) in (0, -signal.SIGTERM)
    (answer,) = answers
    assert answer.status_code == 200
    for tags, result in zip(expected, answer.json()["results"], strict=True):
        found = {tag["category"]: tag["probability"] for tag in result["tags"]}
        assert found == {tag.category: pytest.approx(tag.probability, abs=1e-6) for tag in tags}


def post(address: str, images: list[Path]) -> httpx2.Response:
    parts = [("images", (path.name, path.read_bytes())) for path in images]
    token = {"Authorization": "Bearer geheim"}
    return httpx2.post(f"{address}/predict?threshold=0", files=parts, headers=token, timeout=30)


def wait_for_images(address: str) -> None:
    for _ in range(200):
        if httpx2.get(f"{address}/health").json()["queue"]["under_way"] == 4:
            return
        time.sleep(0.01)
    raise AssertionError("the images never came")


def test_a_users_mistake_is_one_message_and_exit_code_2(tmp_path: Path):
    answer = command("serve", tmp_path / "gone", "--port", 0)
    assert answer.returncode == 2
    assert "gone: no such run folder or ONNX file" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            UserError, match=rf"127\.0\.0\.1 port {port} cannot be used .* choose another with --port"
        ):
            taken_port("127.0.0.1", port)
    with pytest.raises(UserError, match="cannot be used"):
        taken_port("no.such.host.invalid", 0)


def test_a_server_open_to_others_without_a_token_says_so():
    with taken_port("127.0.0.1", 0) as listening:
        closed = opening_lines(Path("runs/a"), listening, "127.0.0.1", None)
        guarded = opening_lines(Path("runs/a"), listening, "0.0.0.0", "geheim")
        wide_open = opening_lines(Path("runs/a"), listening, "0.0.0.0", None)
        assert f"http://127.0.0.1:{listening.getsockname()[1]}" in closed[0]
    assert (len(closed), len(guarded)) == (1, 1)
    assert wide_open[1] == "Anyone who reaches 0.0.0.0 can use it: there is no --token."


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("example.org", False)],
)
def test_which_hosts_are_this_machine_alone(host: str, expected: bool):
    assert is_loopback(host) is expected


@pytest.mark.parametrize("token", ["", " ", "a ", "ä"])
def test_a_token_nobody_could_send_is_refused(token: str):
    with pytest.raises(UserError, match="--token"):
        check_token(token)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch):
    check_installed()
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=r"needs fastapi, uvicorn, python-multipart: pip install 'fewtags\[serve\]'"
    ):
        check_installed()
