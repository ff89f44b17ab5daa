"""The JSON under /api."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, HTTPException, Path, Query
from fastapi.responses import Response

from fewtags.completion.suggestions import DECISIONS, ORIGINS
from fewtags.errors import UserError
from fewtags.review import schemas as s
from fewtags.review.attention import NoAttentionError
from fewtags.review.filters import Filters
from fewtags.review.images import SIDES
from fewtags.review.orders import ORDERS
from fewtags.review.queue import STATES
from fewtags.review.session import ChangedError, NoSuchEntryError, Review

if TYPE_CHECKING:
    from fewtags.review.app import Parts

Number = Annotated[int, Path(ge=0)]


def api_routes(parts: Parts) -> APIRouter:
    router = APIRouter(prefix="/api")
    _add_questions(router, parts)
    _add_answers(router, parts.review)
    _add_pictures(router, parts)
    _add_export(router, parts)
    return router


def _filters(query: s.FilterQuery, review: Review) -> Filters:
    unknown = [name for name in query.category if name not in review.category_codes]
    if unknown:
        raise HTTPException(422, f"there is no category {unknown[0]!r}")
    return Filters(
        frozenset(review.category_codes[name] for name in query.category),
        query.low,
        query.high,
        frozenset(query.decision),
        frozenset(query.origin),
    )


def _add_questions(router: APIRouter, parts: Parts) -> None:
    review = parts.review

    @router.get("/setup")
    def setup() -> s.Setup:
        """What is reviewed, and what can be chosen."""
        return s.Setup(
            data=parts.data,
            run=parts.run,
            suggestions=parts.suggestions,
            order=parts.order,
            orders=list(ORDERS),
            categories=list(review.names.categories),
            decisions=list(DECISIONS),
            origins=list(ORIGINS),
            progress=s.Progress(**review.progress(Filters())),
        )

    @router.get("/next")
    def next_items(query: Annotated[s.NextQuery, Query()]) -> s.NextAnswer:
        """The next questions. What is on the screen of another tab is left out."""
        filters = _filters(query, review)
        states = [STATES.index(state) for state in query.state]
        if query.after is not None and query.after >= len(review.index):
            raise HTTPException(422, "there is no such row")
        order = query.order or parts.order
        items = review.next(filters, order, states, query.count, query.tab, query.after)
        return s.NextAnswer.model_validate({"items": items, "progress": review.progress(filters)})

    @router.get("/progress")
    def progress(query: Annotated[s.FilterQuery, Query()]) -> s.Progress:
        """How many pass the filters, and how many of them have which answer."""
        return s.Progress(**review.progress(_filters(query, review)))

    @router.get("/items/{row}")
    def item(row: Number) -> s.Item:
        if row >= len(review.index):
            raise HTTPException(404, "there is no such row")
        return s.Item.model_validate(review.item(row))


def _add_answers(router: APIRouter, review: Review) -> None:
    @router.post("/answers")
    def answer(body: s.AnswerBody) -> s.Saved:
        """Answer one. It is on disk before this returns."""
        state = STATES.index(body.answer)
        try:
            saved = review.answer(body.image, body.category, state, body.tab, body.request)
        except NoSuchEntryError as problem:
            raise HTTPException(404, str(problem)) from problem
        states = {"state": STATES[saved.state], "previous": STATES[saved.previous]}
        return s.Saved.model_validate({"unit": saved.unit, **states})

    @router.post("/undo")
    def undo(body: s.UndoBody) -> s.UndoAnswer:
        """Take back the tab's last answer (or bulk accept), else the last from before the server started."""
        undone = review.undo(body.tab, body.unit)
        if undone is None:
            return s.UndoAnswer(unit=None)
        unit, kind, rows = undone
        item = s.Item.model_validate(review.item(int(rows[0]))) if len(rows) == 1 else None
        return s.UndoAnswer(unit=unit, kind=kind, entries=len(rows), item=item)

    @router.get("/bulk")
    def bulk_preview(query: Annotated[s.BulkQuery, Query()]) -> s.BulkPreview:
        """How many would be answered, the least sure of them, and a few others."""
        rows = review.bulk_rows(_filters(query, review), query.answer, query.level)
        sample = [s.Item.model_validate(review.item(row)) for row in review.bulk_sample(rows, query.answer)]
        return s.BulkPreview(count=len(rows), sample=sample)

    @router.post("/bulk")
    def bulk(body: s.BulkBody) -> s.BulkAnswer:
        """Answer all of them; one undo takes all back."""
        filters = _filters(body.filters, review)
        try:
            count = review.bulk(filters, body.answer, body.level, body.expected, body.tab, body.request)
        except ChangedError as problem:
            raise HTTPException(409, str(problem)) from problem
        return s.BulkAnswer(count=count)

    @router.get("/history")
    def history(limit: Annotated[int, Query(ge=1, le=500)] = 50) -> s.History:
        """The newest answers first, undone ones too."""
        units = [unit.__dict__ | {"answer": STATES[unit.answer]} for unit in review.decisions.history(limit)]
        return s.History.model_validate({"units": units})


def _add_pictures(router: APIRouter, parts: Parts) -> None:
    count = len(parts.pictures.images)

    @router.get(
        "/images/{number}/{size}", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}}
    )
    def image(number: Number, size: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
        """An image of the data set by its number, `full` or `thumb`."""
        if number >= count or size not in SIDES:
            raise HTTPException(404, "there is no such image")
        try:
            picture = parts.pictures.picture(number, size)
        except UserError as problem:
            raise HTTPException(404, str(problem)) from problem
        headers = {"ETag": picture.etag, "Cache-Control": "private, max-age=600"}
        if if_none_match == picture.etag:
            return Response(status_code=304, headers=headers)
        return Response(picture.jpeg, media_type="image/jpeg", headers=headers)

    @router.get("/attention/{image_number}/{category_number}")
    def attention(image_number: Number, category_number: Number, response: Response) -> s.Attention:
        """Where the model looked for the category: H rows of W numbers from 0 to 1."""
        if image_number >= count or category_number >= len(parts.review.names.categories):
            raise HTTPException(404, "there is no such image or category")
        response.headers["Cache-Control"] = "private, max-age=600"
        try:
            return s.Attention(grid=parts.attention.grid(image_number, category_number))
        except (NoAttentionError, UserError) as problem:
            raise HTTPException(404, str(problem)) from problem


def _add_export(router: APIRouter, parts: Parts) -> None:
    @router.post("/export")
    def export() -> s.Exported:
        """Write the labels with all answers in them, on the server."""
        return parts.export()

    @router.get("/labels.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
    def labels() -> Response:
        """The same labels, to download."""
        headers = {"Content-Disposition": 'attachment; filename="labels.csv"'}
        return Response(parts.labels_csv(), media_type="text/csv; charset=utf-8", headers=headers)
