"""The images in a request: its body, or the files of a multipart form. Never more bytes than allowed are read."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from fewtags.serve.limits import Limits, Refusal

NOTHING = "no image in the request; send one as the body, or one or more as files of a multipart form"
FORM_OVERHEAD = 4096
"""Bytes for the headers of each part of a form."""


@dataclass(frozen=True)
class Upload:
    name: str
    """The file's name; "body" where there is none."""
    content: bytes | Refusal


async def read_uploads(request: Request, limits: Limits) -> list[Upload]:
    try:
        if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            return await _from_form(request, limits)
        return [Upload("body", await _from_body(request, limits))]
    except ClientDisconnect as problem:
        raise Refusal(400, "the request ended before its body did") from problem


async def _from_body(request: Request, limits: Limits) -> bytes:
    message = f"the image is larger than {limits.max_image_mb:g} MB; send it smaller"
    content = b"".join([chunk async for chunk in _bounded(request, limits.image_bytes, message)])
    if not content:
        raise Refusal(422, NOTHING)
    return content


async def _from_form(request: Request, limits: Limits) -> list[Upload]:
    most = limits.max_images * (limits.image_bytes + FORM_OVERHEAD)
    message = f"the request is larger than {limits.max_images} images of {limits.max_image_mb:g} MB; send fewer"
    stream = _bounded(request, most, message)
    parser = MultiPartParser(
        request.headers, stream, max_files=limits.max_images, max_fields=0, max_part_size=FORM_OVERHEAD
    )
    try:
        form = await parser.parse()
    except MultiPartException as problem:
        raise _refused_form(problem, limits) from problem
    try:
        files = [part for _, part in form.multi_items() if isinstance(part, UploadFile)]
        if not files:
            raise Refusal(422, NOTHING)
        return [await _read(file, limits) for file in files]
    finally:
        await form.close()


def _refused_form(problem: MultiPartException, limits: Limits) -> Refusal:
    if problem.message.startswith("Too many files"):
        return Refusal(413, f"more than {limits.max_images} images in one request; send fewer at a time")
    if problem.message.startswith("Too many fields"):
        return Refusal(422, "the form has a field that is no file; `top` and `threshold` go into the address")
    return Refusal(422, f"the multipart form cannot be read: {problem.message}")


async def _read(file: UploadFile, limits: Limits) -> Upload:
    name = file.filename or "body"
    if file.size is not None and file.size > limits.image_bytes:
        return Upload(name, Refusal(413, f"larger than {limits.max_image_mb:g} MB; send it smaller"))
    return Upload(name, await file.read())


async def _bounded(request: Request, most: int, message: str) -> AsyncGenerator[bytes, None]:
    """The body in pieces; refused at once when it says it is too long, and in the middle when it turns out so."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most:
        raise Refusal(413, message)
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > most:
            raise Refusal(413, message)
        yield chunk
