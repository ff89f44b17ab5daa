"""Every route and every refusal, through the app as a client meets it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import fewtags
from fewtags.errors import UserError
from fewtags.serve.app import create_app
from fewtags.serve.limits import Limits, Places, Refusal
from fewtags.serve.models import Model, open_model
from tests.serve.fabricate import ColourModel, picture
from tests.serve.test_metrics import parsed


@contextmanager
def serving(model: Model | None = None, token: str | None = None, **limits) -> Iterator[TestClient]:
    app = create_app(model or ColourModel(), Limits(**({"max_wait_ms": 1.0} | limits)), token)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def files(*contents: bytes) -> list[tuple[str, tuple[str, bytes]]]:
    return [("images", (f"{place}.png", content)) for place, content in enumerate(contents)]


def test_one_image_as_the_body():
    with serving() as client:
        answer = client.post("/predict", content=picture(255, 51, 204))
    assert answer.status_code == 200
    (result,) = answer.json()["results"]
    assert result["image"] == "body"
    assert [tag["category"] for tag in result["tags"]] == ["red", "blue"]  # green is below its own threshold
    assert [tag["probability"] for tag in result["tags"]] == pytest.approx([1.0, 0.8], abs=1e-6)


def test_several_images_as_files_in_their_order():
    with serving() as client:
        answer = client.post("/predict", files=files(picture(255), picture(0, 255), picture(0, 0, 255)))
    assert answer.status_code == 200
    found = [(result["image"], [tag["category"] for tag in result["tags"]]) for result in answer.json()["results"]]
    assert found == [("0.png", ["red"]), ("1.png", ["green"]), ("2.png", ["blue"])]


def test_top_and_threshold():
    with serving() as client:
        image = picture(204, 51, 102)
        top = client.post("/predict?top=2", content=image).json()["results"][0]["tags"]
        above = client.post("/predict?threshold=0.15", content=image).json()["results"][0]["tags"]
        both = client.post("/predict?threshold=0.3&top=1", content=image).json()["results"][0]["tags"]
        none = client.post("/predict?threshold=1", content=image).json()["results"][0]["tags"]
    assert [tag["category"] for tag in top] == ["red", "blue"]
    assert [tag["category"] for tag in above] == ["red", "blue", "green"]
    assert [tag["category"] for tag in both] == ["red"]
    assert none == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("top=0", "top: Input should be greater than or equal to 1, not '0'"),
        ("top=many", "top: Input should be a valid integer"),
        ("threshold=1.5", "threshold: Input should be less than or equal to 1"),
        ("threshold=nan", "threshold: "),
    ],
)
def test_a_query_that_makes_no_sense_is_said_in_words(query: str, message: str):
    with serving() as client:
        answer = client.post(f"/predict?{query}", content=picture())
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(message)


def test_a_bad_image_fails_alone_and_alone_decides_the_status():
    with serving() as client:
        mixed = client.post("/predict", files=files(picture(255), b"nothing", picture(0, 255)))
        bad = client.post("/predict", files=files(b"nothing", b"nothing either"))
        single = client.post("/predict", content=b"nothing")
    assert mixed.status_code == 200
    first, second, third = mixed.json()["results"]
    assert (first["tags"][0]["category"], third["tags"][0]["category"]) == ("red", "green")
    assert second == {"image": "1.png", "error": "not an image; send JPEG, PNG, WebP, BMP, TIFF or GIF"}
    assert (bad.status_code, single.status_code) == (422, 422)
    assert len(bad.json()["results"]) == 2
    assert single.json()["error"].startswith("not an image")


def test_an_image_the_model_fails_on_fails_alone(caplog: pytest.LogCaptureFixture):
    with serving() as client:
        mixed = client.post("/predict", files=files(picture(255), picture(255, 255, 255)))
        alone = client.post("/predict", content=picture(255, 255, 255))
    assert mixed.status_code == 200
    assert "tags" in mixed.json()["results"][0]
    assert "the model failed on this image" in mixed.json()["results"][1]["error"]
    assert alone.status_code == 500
    assert "white" not in alone.text  # what went wrong inside is for the log


def test_too_many_bytes():
    large = picture() + b"\0" * 20_000
    with serving(max_image_mb=0.01, max_images=2) as client:
        body = client.post("/predict", content=large)
        unannounced = client.post("/predict", content=iter([large[:5000], large[5000:]]))
        one_of_two = client.post("/predict", files=files(picture(255), large[:15_000]))
        form = client.post("/predict", files=files(large * 3))
    for answer in (body, unannounced):
        assert answer.status_code == 413
        assert answer.json()["error"] == "the image is larger than 0.01 MB; send it smaller"
    assert one_of_two.status_code == 200
    assert one_of_two.json()["results"][1]["error"] == "larger than 0.01 MB; send it smaller"
    assert form.status_code == 413
    assert form.json()["error"] == "the request is larger than 2 images of 0.01 MB; send fewer"


def test_too_many_pixels():
    with serving(max_pixels=199) as client:
        answer = client.post("/predict", content=picture())
    assert answer.status_code == 413
    assert answer.json()["error"].startswith("20 x 10 pixels, and 199 in all is the most")


def test_too_many_images():
    with serving(max_images=2) as client:
        answer = client.post("/predict", files=files(picture(), picture(), picture()))
        fine = client.post("/predict", files=files(picture(), picture()))
    assert answer.status_code == 413
    assert answer.json()["error"] == "more than 2 images in one request; send fewer at a time"
    assert fine.status_code == 200


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"content": b""}, "no image in the request; send one as the body"),
        ({"content": b"--b--\r\n", "headers": {"content-type": "multipart/form-data; boundary=b"}}, "no image"),
        (
            {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
            "form cannot be read: Missing bound",
        ),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data; boundary=b"}}, "form cannot be read"),
        ({"data": {"top": "3"}, "files": files(picture())}, "a field that is no file; `top` and"),
    ],
)
def test_requests_without_an_image(request_: dict, message: str):
    with serving() as client:
        answer = client.post("/predict", **request_)
    assert answer.status_code == 422
    assert message in answer.json()["error"]


def test_a_full_queue_is_503_and_frees_itself():
    model = ColourModel()
    with serving(model, max_queue=3, max_images=3) as client:
        places: Places = client.app.state.service.places  # type: ignore[attr-defined]
        places.take(2)
        refused = client.post("/predict", files=files(picture(), picture()))
        taken = client.post("/predict", content=picture(255))
        places.take(1)
        not_even_read = client.post("/predict", content=b"nothing")
        health = client.get("/health").json()["queue"]
        places.taken = 0
        again = client.post("/predict", files=files(picture(), picture(), picture()))
        after = client.get("/health").json()["queue"]
    assert (refused.status_code, not_even_read.status_code) == (503, 503)
    assert refused.headers["retry-after"] == "1"
    assert "3 is the most; try again in a second" in refused.json()["error"]
    assert (taken.status_code, again.status_code) == (200, 200)
    assert health == {"waiting": 0, "under_way": 3, "most": 3}
    assert after["under_way"] == 0


def test_places_are_all_or_none():
    places = Places(4)
    with places.held() as held:
        held.grow_to(3)
        assert places.taken == 3
        with pytest.raises(Refusal), places.held() as other:
            other.grow_to(2)
        assert places.taken == 3
    assert places.taken == 0


def test_limits_that_contradict_each_other():
    with pytest.raises(UserError, match=r"--max-images 9 is more than --max-queue 8: .* raise --max-queue"):
        Limits(max_images=9, max_queue=8)


def test_an_answer_that_takes_too_long_is_504_and_gives_its_place_back():
    model = ColourModel()
    with serving(model, timeout=2.0) as client:
        wait_until_ready(client)
        model.go_on.clear()
        answer = client.post("/predict", content=picture())
        model.go_on.set()
        assert client.app.state.service.places.taken == 0  # type: ignore[attr-defined]
        assert client.post("/predict", content=picture()).status_code == 200
    assert answer.status_code == 504
    assert answer.json()["error"].startswith("the request has not been tagged within 2 s; send fewer")


def wait_until_ready(client: TestClient) -> None:
    for _ in range(3000):
        if client.get("/health").status_code == 200:
            return
        time.sleep(0.01)
    raise AssertionError("never ready")


def status_of(receive, **limits) -> tuple[int, str]:
    """What the app answers to a request whose body comes from `receive`."""
    app, sent = create_app(ColourModel(), Limits(**limits)), []

    async def ask() -> None:
        async def send(message) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/predict", "query_string": b"", "headers": []}
        async with app.router.lifespan_context(app):
            await app(scope, receive, send)

    asyncio.run(ask())
    return sent[0]["status"], json.loads(sent[1]["body"])["error"]


def test_a_body_that_does_not_arrive_is_408():
    async def never() -> None:
        await asyncio.sleep(60)

    status, message = status_of(never, timeout=0.2)
    assert status == 408
    assert message.startswith("the request has not arrived within 0.2 s")


def test_a_client_that_leaves_in_the_middle_is_no_fault_of_ours():
    messages = iter([{"type": "http.request", "body": b"x", "more_body": True}, {"type": "http.disconnect"}])

    async def leaves() -> dict:
        return next(messages)

    assert status_of(leaves) == (400, "the request ended before its body did")


def test_health_before_and_after_the_warm_up():
    model = ColourModel()
    model.go_on.clear()
    with serving(model) as client:
        before = client.get("/health")
        model.go_on.set()
        wait_until_ready(client)
        after = client.get("/health").json()
    assert before.status_code == 503
    assert before.json()["status"] == "starting"
    assert (after["status"], after["version"]) == ("ready", fewtags.__version__)
    assert after["runtime"] == "arithmetic"
    assert (after["model"]["method"], after["model"]["categories"]) == ("plain", 3)


def test_categories():
    with serving() as client:
        assert client.get("/categories").json()["categories"][1] == {
            "category": "green",
            "decision_threshold": 0.25,
        }


def test_metrics_count_requests_images_and_batches():
    with serving() as client:
        client.post("/predict", files=files(picture(), picture(), b"nothing"))
        client.post("/predict", content=b"nothing")
        client.get("/nowhere")
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = parsed(answer.text)
    assert found['fewtags_requests_total{path="/predict",status="200"}'] == 1
    assert found['fewtags_requests_total{path="/predict",status="422"}'] == 1
    assert found['fewtags_requests_total{path="other",status="404"}'] == 1
    assert found['fewtags_images_total{outcome="tagged"}'] == 2
    assert found['fewtags_images_total{outcome="refused"}'] == 2
    assert found["fewtags_batch_size_sum"] == 2
    assert found["fewtags_predict_seconds_count"] == 2


def test_a_token_is_asked_for_everywhere_but_at_health():
    with serving(token="geheim") as client:
        for path in ("/categories", "/metrics"):
            assert client.get(path).status_code == 401
        for header in ("", "geheim", "Bearer", "Bearer geheimnis", "Bearer gehei", "bearer \xe4"):
            answer = client.post(
                "/predict", content=picture(), headers={"Authorization": header.encode("latin-1")}
            )
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "Authorization: Bearer TOKEN" in answer.json()["error"]
        right = client.post("/predict", content=picture(), headers={"Authorization": "Bearer geheim"})
        assert right.status_code == 200
        assert client.get("/health").json()["runtime"] == "arithmetic"


def test_what_does_not_exist_is_said_in_json():
    with serving() as client:
        assert client.get("/predict").json()["error"] == "GET /predict: Method Not Allowed"
        assert client.get("/nowhere").json()["error"] == "GET /nowhere: Not Found"
        schema = client.get("/openapi.json").json()["paths"]["/predict"]["post"]
    assert set(schema["requestBody"]["content"]) == {"multipart/form-data", "image/*"}
    assert {parameter["name"] for parameter in schema["parameters"]} == {"top", "threshold"}


def test_a_fault_of_ours_says_nothing_of_the_inside(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("fewtags.serve.app.chosen_tags", broken)
    with serving() as client:
        answer = client.post("/predict", content=picture())
    assert answer.status_code == 500
    assert answer.json() == {"error": "a fault of the server's own; its log says more"}


@pytest.mark.parametrize("source", ["trained", "exported"])
def test_the_answers_are_those_of_predict(
    source: str, trained: Path, colours: Path, request: pytest.FixtureRequest
):
    images = sorted((colours / "images").iterdir())[:16]
    tagger = fewtags.load(trained)
    with serving(open_model(request.getfixturevalue(source), threads=1)) as client:
        parts = [("images", (path.name, path.read_bytes())) for path in images]
        for query, how in (("", {}), ("?threshold=0", {"threshold": 0.0}), ("?top=2", {"top": 2})):
            results = client.post(f"/predict{query}", files=parts).json()["results"]
            for path, result, tags in zip(images, results, tagger.predict(images, **how), strict=True):
                assert result["image"] == path.name
                found = {tag["category"]: tag["probability"] for tag in result["tags"]}
                assert found == {tag.category: pytest.approx(tag.probability, abs=1e-6) for tag in tags}
