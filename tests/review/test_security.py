from __future__ import annotations

import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fewtags.errors import UserError
from fewtags.review.security import HEADERS, LARGEST_BODY, Policy, host_name, is_loopback
from tests.review.fabricate import make_app, make_review

TOKEN = "a-secret-of-20-chars"
UNDO = {"tab": "a"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    place, review = make_review(tmp_path_factory.mktemp("review"))
    yield place, review
    review.decisions.close()


def client(made, policy: Policy | None = None, base: str = "http://127.0.0.1:8765") -> TestClient:
    return TestClient(make_app(*made, policy), base_url=base, follow_redirects=False)


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:9000", "[::1]:8765", "LOCALHOST"])
def test_this_machines_names_are_answered(made, host: str):
    assert client(made).get("/api/setup", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "192.168.1.5", ""]
)
def test_a_rebound_name_is_refused(made, host: str):
    for path in ("/", "/api/setup", "/api/images/0/full"):
        assert client(made).get(path, headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_cannot_write(made, headers: dict[str, str]):
    assert client(made).post("/api/undo", json=UNDO, headers=headers).status_code == 403


def test_the_page_itself_and_programs_can_write(made):
    for headers in ({"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"}, {}):
        assert client(made).post("/api/undo", json=UNDO, headers=headers).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_is_not_json(made, kind: str):
    answered = client(made).post("/api/undo", content=b'{"tab": "a"}', headers={"content-type": kind})
    assert answered.status_code == 415


def test_other_sites_cannot_read(made):
    crossing = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client(made).get("/api/images/0/full", headers=crossing).status_code == 403
    following_a_link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client(made).get("/", headers=following_a_link).status_code == 200
    assert (
        "access-control-allow-origin" not in client(made).get("/api/setup", headers={"origin": "http://x"}).headers
    )
    assert client(made).options("/api/undo", headers={"origin": "http://x"}).status_code in (403, 405)


@pytest.mark.parametrize("path", ["/", "/api/setup", "/api/images/0/thumb", "/static/review.js", "/gone"])
def test_every_answer_has_the_headers(made, path: str):
    headers = client(made).get(path).headers
    for name, value in HEADERS.items():
        assert headers[name] == value
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["cache-control"]


def test_refusals_have_them_too(made):
    refused = client(made).get("/", headers={"host": "evil.example"})
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert refused.headers["content-type"] == "application/json"


def test_bodies_are_bounded(made):
    json_kind = {"content-type": "application/json"}
    large = b'{"tab": "' + b"a" * LARGEST_BODY + b'"}'
    assert client(made).post("/api/undo", content=large, headers=json_kind).status_code == 413
    pieces = (b"a" * 1000 for _ in range(200))  # no content-length
    assert client(made).post("/api/undo", content=pieces, headers=json_kind).status_code == 413
    lying = json_kind | {"content-length": "minus one"}
    assert client(made).post("/api/undo", content=b"{}", headers=lying).status_code in (400, 413)


def test_another_host_needs_a_token():
    for host in ("0.0.0.0", "192.168.1.5", "::", "box.local"):
        with pytest.raises(UserError, match="--token"):
            Policy(host)
    with pytest.raises(UserError, match="16 or more letters"):
        Policy("0.0.0.0", token="short")
    with pytest.raises(UserError, match="16 or more letters"):
        Policy("0.0.0.0", token="with spaces; and = signs")
    for host in ("127.0.0.1", "localhost", "::1", "127.0.0.2"):
        assert is_loopback(host)
        assert Policy(host).token is None


def test_a_token_lets_in_once_and_for_all(made):
    visitor = client(made, Policy("0.0.0.0", 8765, TOKEN), "http://192.168.1.5:8765")
    for path in ("/", "/api/setup", "/static/review.js", "/api/images/0/full"):
        assert visitor.get(path).status_code == 401
    assert visitor.get("/?token=not-the-right-one-at-all").status_code == 401
    assert visitor.post("/api/undo", json=UNDO).status_code == 401
    welcome = visitor.get(f"/?token={TOKEN}")
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert visitor.get("/api/setup").status_code == 200  # the cookie is kept
    assert visitor.post("/api/undo", json=UNDO).status_code == 200


def test_a_program_sends_the_token(made):
    program = client(made, Policy("0.0.0.0", 8765, TOKEN), "http://192.168.1.5:8765")
    assert program.get("/api/setup", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert program.get("/api/setup", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert program.get("/api/setup", headers={"cookie": "fewtags_review_8765=wrong"}).status_code == 401
    assert program.get("/api/setup", headers={"authorization": "Bearer é".encode("latin-1")}).status_code == 401


def test_with_a_token_addresses_are_answered_but_strange_names_are_not(made):
    open_one = client(made, Policy("0.0.0.0", 8765, TOKEN))
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert open_one.get("/api/setup", headers=bearer | {"host": "10.0.0.7:8765"}).status_code == 200
    assert open_one.get("/api/setup", headers=bearer | {"host": "evil.example"}).status_code == 421


def test_the_token_is_not_logged(made, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG, logger="uvicorn"):
        client(made, Policy("0.0.0.0", 8765, TOKEN)).get(f"/?token={TOKEN}")
    assert TOKEN not in caplog.text
    assert "access_log=False" in Path("fewtags/review/start.py").read_text()


def test_host_names():
    assert host_name("[::1]:8765") == "::1"
    assert host_name("Localhost:80") == "localhost"
    assert host_name("") == ""
