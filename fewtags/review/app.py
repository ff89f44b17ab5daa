"""Pages, and under /api the same as JSON. Endpoints are plain functions: they run off the event loop."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape

from fewtags.errors import UserError
from fewtags.review.api import api_routes
from fewtags.review.attention import AttentionMaps
from fewtags.review.images import Pictures
from fewtags.review.schemas import Exported
from fewtags.review.security import Guard, Policy
from fewtags.review.session import Review

HERE = Path(__file__).parent
CONTENT_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Parts:
    """What the pages show and write."""

    review: Review
    pictures: Pictures
    attention: AttentionMaps
    export: Callable[[], Exported]
    labels_csv: Callable[[], str]
    order: str
    data: str
    run: str
    suggestions: str


def create_app(parts: Parts, policy: Policy) -> FastAPI:
    app = FastAPI(
        title="fewtags review",
        description="Everything the page does. Suggestions are filtered and ordered by the server.",
        docs_url=None,  # FastAPI's page loads scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.include_router(api_routes(parts))
    _add_pages(app, parts)
    app.add_exception_handler(UserError, _users_mistake)
    app.add_exception_handler(sqlite3.OperationalError, _not_kept)
    app.add_middleware(Guard, policy=policy)
    return app


def _users_mistake(request: Request, problem: Exception) -> Response:
    return JSONResponse({"detail": str(problem)}, 422)


def _not_kept(request: Request, problem: Exception) -> Response:
    """The disk is full, or cannot be written to. The page keeps the answer and tries again."""
    return JSONResponse({"detail": f"not saved yet, the disk does not take it: {problem}"}, 507)


def _add_pages(app: FastAPI, parts: Parts) -> None:
    templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape())
    files = [path for path in (HERE / "static").iterdir() if path.suffix in CONTENT_TYPES]
    static = {path.name: (path.read_bytes(), CONTENT_TYPES[path.suffix]) for path in files}

    def page(name: str, **values: object) -> Response:
        return Response(templates.get_template(name).render(**values), media_type="text/html; charset=utf-8")

    @app.get("/", include_in_schema=False)
    def review_page() -> Response:
        return page("review.html", parts=parts)

    @app.get("/history", include_in_schema=False)
    def history_page() -> Response:
        return page("history.html", parts=parts)

    @app.get("/docs", include_in_schema=False)
    def docs_page() -> Response:
        return page("docs.html", schema=app.openapi())

    @app.get("/static/{name}", include_in_schema=False)
    def static_file(name: str) -> Response:
        if name not in static:
            raise HTTPException(404, "there is no such file")
        content, kind = static[name]
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})
