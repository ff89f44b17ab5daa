"""The routes of `fewtags serve`. Every error is JSON: {"error": what is wrong and what to do}."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from fewtags import __version__
from fewtags.serve.guard import Guard
from fewtags.serve.limits import Limits, Refusal
from fewtags.serve.metrics import CONTENT_TYPE, Counted
from fewtags.serve.models import Model
from fewtags.serve.service import Answer, Service
from fewtags.tags import chosen_tags

BODY = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {"images": {"type": "array", "items": {"type": "string", "format": "binary"}}},
            }
        },
        "image/*": {"schema": {"type": "string", "format": "binary"}},
    },
}
UNAUTHORISED = "this server wants a token: send the header `Authorization: Bearer TOKEN`"

open_routes = APIRouter()
routes = APIRouter()


def create_app(
    model: Model, limits: Limits | None = None, token: str | None = None, local: bool = False
) -> FastAPI:
    """`local`: listens to this machine alone, so that only its programs may ask; see `guard`."""
    service = Service(model, limits or Limits())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await run_in_threadpool(service.close)

    app = FastAPI(title="fewtags", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service, app.state.token = service, token
    app.include_router(open_routes)
    app.include_router(routes, dependencies=[Depends(authorised)])
    app.add_middleware(Counted, metrics=service.metrics)
    app.add_middleware(Guard, local=local and token is None)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _fault)
    return app


async def service_of(request: Request) -> Service:
    return request.app.state.service


async def authorised(request: Request) -> None:
    """Compared in constant time, so that a token cannot be guessed letter by letter."""
    token = request.app.state.token
    given = request.headers.get("authorization", "")
    if token is not None and not secrets.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise Refusal(401, UNAUTHORISED, {"WWW-Authenticate": "Bearer"})


ServiceOf = Annotated[Service, Depends(service_of)]


@routes.post("/predict", openapi_extra={"requestBody": BODY})
async def predict(
    request: Request,
    service: ServiceOf,
    top: Annotated[int | None, Query(ge=1, description="The K most likely tags of each image.")] = None,
    threshold: Annotated[
        float | None, Query(ge=0, le=1, description="One threshold for all; default each category's own.")
    ] = None,
) -> JSONResponse:
    """Tags of each image, most likely first, as `fewtags predict` gives them.

    Images that cannot be read get an "error" in place of "tags"; the status is theirs if there is no other image.
    """
    answers = await service.answers(request)
    results = [_result(answer, service, top, threshold) for answer in answers]
    refusals = [answer.result for answer in answers if isinstance(answer.result, Refusal)]
    if len(refusals) < len(answers):
        return JSONResponse({"results": results})
    first = refusals[0]
    return JSONResponse({"error": first.message, "results": results}, first.status, first.headers)


def _result(answer: Answer, service: Service, top: int | None, threshold: float | None) -> dict[str, Any]:
    if isinstance(answer.result, Refusal):
        return {"image": answer.name, "error": answer.result.message}
    card = service.model.card
    tags = chosen_tags(answer.result, card.categories, card.decision_thresholds, top, threshold)
    return {
        "image": answer.name,
        "tags": [{"category": tag.category, "probability": tag.probability} for tag in tags],
    }


@routes.get("/categories")
async def categories(service: ServiceOf) -> dict[str, Any]:
    """Each category and the probability from which it is called present."""
    card = service.model.card
    pairs = zip(card.categories, card.decision_thresholds, strict=True)
    return {"categories": [{"category": name, "decision_threshold": least} for name, least in pairs]}


@open_routes.get("/health")
async def health(service: ServiceOf) -> JSONResponse:
    """200 once the model has warmed up and until the server shuts down, else 503."""
    card, state = service.model.card, service.batcher.state
    model = card.model_dump(include={"method", "backbone", "image_size", "recipe_hash", "fewtags_version"})
    answer = {
        "status": state,
        "version": __version__,
        "runtime": service.model.runtime,
        "model": model | {"categories": len(card.categories)},
        "queue": {
            "waiting": len(service.batcher),
            "under_way": service.places.taken,
            "most": service.places.total,
        },
    }
    return JSONResponse(answer, 200 if state == "ready" else 503)


@routes.get("/metrics")
async def metrics(service: ServiceOf) -> Response:
    """Counts and latencies for Prometheus."""
    text = service.metrics.text(len(service.batcher), service.batcher.state == "ready")
    return PlainTextResponse(text, media_type=CONTENT_TYPE)


async def _refused(_: Request, refusal: Exception) -> JSONResponse:
    assert isinstance(refusal, Refusal)
    return JSONResponse({"error": refusal.message}, refusal.status, refusal.headers)


async def _invalid(_: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    said = [f"{error['loc'][-1]}: {error['msg']}, not {error.get('input')!r}" for error in problem.errors()]
    return JSONResponse({"error": "; ".join(said)}, 422)


async def _http(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, HTTPException)
    message = f"{request.method} {request.url.path}: {problem.detail}"
    return JSONResponse({"error": message}, problem.status_code, problem.headers)


async def _fault(_: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"error": "a fault of the server's own; its log says more"}, 500)
