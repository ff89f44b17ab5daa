"""Attacks on `fewtags serve`: the same list as for `review`, as far as there is something to attack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from fewtags.errors import UserError
from fewtags.serve.app import create_app
from fewtags.serve.guard import HEADERS
from fewtags.serve.limits import Limits
from fewtags.serve.run import check_closed
from tests.serve.fabricate import ColourModel, picture

TOKEN = "geheim"


@pytest.fixture
def local() -> Iterator[TestClient]:
    with TestClient(create_app(ColourModel(), local=True), base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.fixture
def guarded() -> Iterator[TestClient]:
    with TestClient(
        create_app(ColourModel(), token=TOKEN, local=True), base_url="http://127.0.0.1:8000"
    ) as client:
        yield client


def post(client: TestClient, **headers: str) -> int:
    return client.post("/predict", content=picture(9), headers=headers).status_code


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "box.local", "example.org"])
def test_another_host_needs_a_token_or_a_clear_word(host: str):
    with pytest.raises(UserError, match="--token"):
        check_closed(host, None, without_token=False)
    check_closed(host, TOKEN, without_token=False)
    check_closed(host, None, without_token=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_needs_none(host: str):
    check_closed(host, None, without_token=False)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000", "LOCALHOST:1"])
def test_this_machines_names_are_answered(local: TestClient, host: str):
    assert post(local, host=host) == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", ""])
def test_a_rebound_name_is_refused(local: TestClient, host: str):
    for path in ("/categories", "/health", "/metrics", "/openapi.json"):
        assert local.get(path, headers={"host": host}).status_code == 421
    assert post(local, host=host) == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8000"},
    ],
)
def test_other_sites_cannot_ask(local: TestClient, headers: dict[str, str]):
    assert post(local, **headers) == 403
    assert local.get("/categories", headers=headers).status_code == 403


def test_programs_and_own_pages_can_ask(local: TestClient):
    assert post(local) == 200
    assert post(local, origin="http://127.0.0.1:8000") == 200
    assert post(local, **{"sec-fetch-site": "same-origin", "origin": "https://behind.a.proxy"}) == 200


def test_with_a_token_names_do_not_matter_and_the_token_does(guarded: TestClient):
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert post(guarded, host="tags.example.org", **bearer) == 200
    assert post(guarded, host="tags.example.org") == 401
    for wrong in ("Bearer wrong", "Basic geheim", "geheim", "Bearer geheim ", "Bearer é"):
        assert guarded.get("/categories", headers={"authorization": wrong.encode("latin-1")}).status_code == 401
    assert guarded.get(f"/categories?token={TOKEN}").status_code == 401


@pytest.mark.parametrize("path", ["/categories", "/health", "/gone", "/metrics"])
def test_every_answer_has_the_headers(local: TestClient, path: str):
    for headers in ({}, {"host": "evil.example"}):
        answer = local.get(path, headers=headers)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\x00b.png", "x" * 3000, "日本.png"])
def test_the_name_of_an_upload_is_a_name_and_no_path(local: TestClient, name: str):
    answer = local.post("/predict", files=[("images", (name, picture(9)))])
    assert answer.status_code in (200, 422)
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "path", ["/../etc/passwd", "/static/../../x", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"]
)
def test_no_file_is_served(local: TestClient, path: str):
    assert local.get(path).status_code == 404


def test_bodies_are_bounded():
    limits = Limits(max_image_mb=0.01, max_images=2)
    with TestClient(create_app(ColourModel(), limits), base_url="http://127.0.0.1:8000") as client:
        assert client.post("/predict", content=bytes(20_000)).status_code == 413
        assert client.post("/predict", content=(bytes(1000) for _ in range(50))).status_code == 413
        parts = [("images", (str(number), bytes(9_000))) for number in range(30)]
        assert client.post("/predict", files=parts).status_code == 413
        announced = {"content-length": str(10**15)}
        assert client.post("/predict", content=b"x", headers=announced).status_code == 413


def test_websockets_are_closed(local: TestClient):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), local.websocket_connect("/predict"):
        pass
