"""Every page and its JSON twin, in process."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from starlette.testclient import TestClient

from tests.review.fabricate import make_app, make_review

BASE = "http://127.0.0.1:8765"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def client(folder: Path):
    place, review = make_review(folder)
    yield TestClient(make_app(place, review), base_url=BASE)
    review.decisions.close()


def answer(client: TestClient, item: dict, value: str, request: str, tab: str = "a"):
    body = {"image": item["image"], "category": item["category"], "answer": value, "tab": tab, "request": request}
    return client.post("/api/answers", json=body)


def test_question_answer_undo(client: TestClient):
    found = client.get("/api/next", params={"count": 2, "tab": "a"}).json()
    item, following = found["items"]
    assert found["progress"] == {"total": 37, "open": 37, "yes": 0, "no": 0, "skipped": 0}
    assert answer(client, item, "yes", "request-1").json() == {"unit": 1, "state": "yes", "previous": "open"}
    assert client.get("/api/next?tab=a").json()["items"][0]["row"] == following["row"]
    assert client.get(f"/api/items/{item['row']}").json()["state"] == "yes"
    assert client.get("/api/history").json()["units"][0]["category"] == item["category"]
    undone = client.post("/api/undo", json={"tab": "a"}).json()
    assert undone["item"]["row"] == item["row"]
    assert undone["item"]["state"] == "open"
    assert client.post("/api/undo", json={"tab": "a"}).json()["unit"] is None


def test_filters_and_orders(client: TestClient):
    found = client.get("/api/next?category=apple&low=0.3&high=0.8&order=uncertain&count=20").json()
    chances = [item["probability"] for item in found["items"]]
    assert {item["category"] for item in found["items"]} == {"apple"}
    assert all(0.3 <= p <= 0.8 for p in chances)
    assert [abs(p - 0.5) for p in chances] == sorted(abs(p - 0.5) for p in chances)
    assert found["progress"]["total"] == len(chances)
    two = client.get("/api/progress?decision=present&decision=absent").json()["total"]
    each = [client.get(f"/api/progress?decision={name}").json()["total"] for name in ("present", "absent")]
    assert two == sum(each) > 0
    assert client.get("/api/progress?origin=none").json()["total"] > 0


@pytest.mark.parametrize(
    "path",
    [
        "/api/next?category=dog",
        "/api/next?low=2",
        "/api/next?count=1000",
        "/api/next?order=best",
        "/api/next?nonsense=1",
        "/api/next?after=99999",
        "/api/bulk",
    ],
)
def test_what_cannot_be_asked(client: TestClient, path: str):
    assert client.get(path).status_code == 422


def test_an_answer_to_nothing(client: TestClient):
    assert answer(client, {"image": "images/0.png", "category": "keyboard"}, "yes", "request-1").status_code == 404
    assert (
        answer(client, {"image": "../../etc/passwd", "category": "mouse"}, "yes", "request-2").status_code == 404
    )
    item = client.get("/api/next").json()["items"][0]
    assert answer(client, item, "perhaps", "request-3").status_code == 422
    assert client.get("/api/items/999").status_code == 404


def test_bulk(client: TestClient):
    preview = client.get("/api/bulk?level=0.8&category=mouse").json()
    assert len(preview["sample"]) == preview["count"] > 0
    body = {
        "filters": {"category": ["mouse"]},
        "answer": "yes",
        "level": 0.8,
        "tab": "a",
        "request": "bulk-request",
    }
    assert client.post("/api/bulk", json=body | {"expected": preview["count"] + 1}).status_code == 409
    assert client.post("/api/bulk", json=body | {"expected": preview["count"]}).json() == {
        "count": preview["count"]
    }
    assert client.get("/api/progress?category=mouse").json()["yes"] == preview["count"]
    assert client.post("/api/undo", json={"tab": "a"}).json()["entries"] == preview["count"]


def test_images_are_scaled_and_cached(client: TestClient):
    answered = client.get("/api/images/0/thumb")
    assert answered.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(answered.content)).size == (96, 64)
    etag = answered.headers["etag"]
    assert client.get("/api/images/0/thumb", headers={"if-none-match": etag}).status_code == 304
    assert client.get("/api/images/1/thumb").headers["etag"] != etag


@pytest.mark.parametrize("path", ["99/full", "0/huge", "-1/full", "x/full", "..%2f..%2fetc%2fpasswd/full"])
def test_no_other_image_can_be_asked_for(client: TestClient, path: str):
    assert client.get(f"/api/images/{path}").status_code in (404, 422)


def test_a_missing_image_is_said(client: TestClient, folder: Path):
    (folder / "data" / "images" / "0.png").unlink()
    answered = client.get("/api/images/0/full")
    assert answered.status_code == 404
    assert "no such image" in answered.json()["detail"]


def test_attention(client: TestClient, folder: Path):
    grid = client.get("/api/attention/0/1").json()["grid"]
    assert (len(grid), len(grid[0]), grid[3][3]) == (4, 4, 1.0)
    assert client.get("/api/attention/0/99").status_code == 404


def test_a_method_without_attention(tmp_path: Path):
    place, review = make_review(tmp_path)
    answered = TestClient(make_app(place, review, attention=False), base_url=BASE).get("/api/attention/0/0")
    assert answered.status_code == 404
    assert "no attention" in answered.json()["detail"]  # by which the page knows
    review.decisions.close()


def test_export(client: TestClient, folder: Path):
    item = client.get("/api/next").json()["items"][0]
    answer(client, item, "no", "request-1")
    done = client.post("/api/export", json={}).json()
    assert done["human"] == 1
    labels = pd.read_csv(done["file"]).set_index("image")
    assert labels.loc[item["image"], item["category"]] == 0
    download = client.get("/api/labels.csv")
    assert download.text == Path(done["file"]).read_text()
    assert "attachment" in download.headers["content-disposition"]


@pytest.mark.parametrize("path", ["/", "/history", "/docs"])
def test_pages_are_self_contained(client: TestClient, path: str):
    page = client.get(path)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(r"<script(?![^>]*\bsrc=)", page.text)  # no inline script
    assert not re.search(r"<style|\sstyle=|\son\w+=", page.text)  # nor style, nor handler
    linked = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert linked
    for link in linked:
        assert link.startswith("/")
        assert client.get(link).status_code == 200, link


def test_modules_import_what_exists(client: TestClient):
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    names = {path.name for path in Path("fewtags/review/static").iterdir()}
    for name in names:
        answered = client.get(f"/static/{name}")
        assert answered.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
        assert set(re.findall(r'from "\./([^"]+)"', answered.text)) <= names
        assert "http://" not in answered.text.replace("http://www.w3.org", "")
        assert "https://" not in answered.text
    assert client.get("/static/..%2fapp.py").status_code == 404


def test_openapi_names_every_endpoint(client: TestClient):
    schema = client.get("/api/openapi.json").json()
    assert {"/api/next", "/api/answers", "/api/undo", "/api/bulk", "/api/history", "/api/export"} <= set(
        schema["paths"]
    )
    page = client.get("/docs").text
    assert all(path in page for path in schema["paths"])
    assert "cdn" not in page
