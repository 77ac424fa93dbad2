"""/api/experiments/{id}/files: what an experiment leaves, to be downloaded; parts of a file by Range."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Final

from fastapi import APIRouter, Request
from fastapi import Path as PathParameter
from pydantic import Field
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from valleyscope.app.api.cached_responses import not_available, open_snapshot
from valleyscope.app.api.dependencies import AppState, State
from valleyscope.app.api.openapi import NOT_MODIFIED, problems
from valleyscope.app.api.parameters import ExperimentId
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.schemas import ResponseModel
from valleyscope.app.experiments.experiment_writer import LANDSCAPE, REPORT, SPEC, VERDICT
from valleyscope.app.storage.experiment_table import ExperimentRow

router = APIRouter(tags=["results"])

SURFACE = "surface.csv"
_TYPES = {
    ".h5": "application/x-hdf5",
    ".safetensors": "application/octet-stream",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
}
_CHUNK = 256 * 1024
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_KEPT = re.compile(rf"/api/experiments/[^/]+/files/(?!{re.escape(SURFACE)}$)")
_BYTES: Final[dict[str, Any]] = {
    kind.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}} for kind in _TYPES.values()
}


class Compression(GZipMiddleware):
    """Leaves files as they are on the disk: a compressed one would be other bytes under the same ETag and Range."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _KEPT.match(scope["path"]):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class File(ResponseModel):
    """A file that can be downloaded."""

    name: str
    size: int | None = Field(description="bytes; null for one that is made when it is asked for")
    link: str


class Files(ResponseModel):
    items: list[File]


@router.get("/experiments/{id}/files", response_model=Files, responses=problems(404))
def list_files(id: ExperimentId, app_state: State) -> Files:
    """The files that are there so far."""
    row = app_state.service.get(id)
    present = app_state.service.files(row)
    found = []
    for name in _names(row):
        if (LANDSCAPE if name == SURFACE else name) in present:
            size = None if name == SURFACE else present[name]
            found.append(File(name=name, size=size, link=f"/api/experiments/{id}/files/{name}"))
    return Files(items=found)


@router.get(
    "/experiments/{id}/files/{name}",
    response_class=Response,
    responses={
        200: {
            "description": "The file",
            "content": {**_BYTES, "application/json": {"schema": {"type": "object"}}},
        },
        206: {
            "description": "The part of the file that Range asks for",
            "content": _BYTES,
        },
        **NOT_MODIFIED,
        **problems(404, 416),
    },
)
async def download(
    id: ExperimentId,
    name: Annotated[
        str,
        PathParameter(
            max_length=100, description="landscape.h5, report.html, <minimum>.safetensors, ...", examples=[LANDSCAPE]
        ),
    ],
    request: Request,
    app_state: State,
) -> Response:
    """Download landscape.h5, a minimum as safetensors, report.html, surface.csv, spec.json or verdict.json."""
    row = await run_in_threadpool(app_state.service.get, id)
    if name not in _names(row):
        raise Problem(404, "unknown-file", f"there is no file {name[:100]!r}: choose from {', '.join(_names(row))}")
    if name == SURFACE:
        return await run_in_threadpool(_surface, app_state, row)
    path = await run_in_threadpool(app_state.service.located, row, name)
    return await run_in_threadpool(_file, path, row, request)


def _names(row: ExperimentRow) -> list[str]:
    """The files that an experiment may have. Names come from here, never from a client."""
    return [LANDSCAPE, REPORT, SURFACE, SPEC, VERDICT, *(f"{minimum}.safetensors" for minimum in row.spec["minima"])]


def _surface(app_state: AppState, row: ExperimentRow) -> Response:
    from valleyscope.landscape.export.csv_tables import surface_chunks  # its package loads plotly, which takes long

    landscape = open_snapshot(app_state, row).landscape
    return StreamingResponse(
        iterate_in_threadpool(surface_chunks(landscape)), media_type=_TYPES[".csv"], headers=_disposition(row, SURFACE)
    )


def _file(path: Path, row: ExperimentRow, request: Request) -> Response:
    """Send a file through a descriptor that stays at this state of it, also when it is replaced meanwhile."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise not_available(f"there is no {path.name}", row, of_two=path.name == VERDICT) from None
    state = os.fstat(file.fileno())
    etag = f'"{state.st_mtime_ns:x}-{state.st_ino:x}-{state.st_size:x}"'
    headers = {"ETag": etag, "Accept-Ranges": "bytes", **_disposition(row, path.name)}
    if etag in request.headers.get("if-none-match", ""):
        file.close()
        return Response(status_code=304, headers={"ETag": etag})
    try:
        span = _span(request, state.st_size, etag)
    except Problem:
        file.close()
        raise
    status = 200
    if span is None:
        start, end = 0, state.st_size
    else:
        start, end = span
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{state.st_size}"
    headers["Content-Length"] = str(end - start)
    return StreamingResponse(_read(file, start, end), status, headers, _TYPES[path.suffix])


async def _read(file: IO[bytes], start: int, end: int) -> AsyncIterator[bytes]:
    def chunks() -> Iterator[bytes]:
        file.seek(start)
        left = end - start
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk

    try:
        async for chunk in iterate_in_threadpool(chunks()):
            yield chunk
    finally:
        file.close()


def _span(request: Request, size: int, etag: str) -> tuple[int, int] | None:
    """First and last-but-one byte that are asked for; None for the whole file.

    A header that is not understood, or asks for several parts, is left aside, as RFC 9110 allows.
    """
    asked = request.headers.get("range", "")
    condition = request.headers.get("if-range")
    found = _RANGE.fullmatch(asked.strip())
    if found is None or found.groups() == ("", "") or (condition is not None and condition != etag):
        return None
    first, last = found.groups()
    if first == "":
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
    if start >= size or start >= end:
        if first and last and int(last) < int(first):
            return None
        raise Problem(
            416,
            "no-such-bytes",
            f"the file has {size} bytes, not {asked!r}",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end


def _disposition(row: ExperimentRow, name: str) -> dict[str, str]:
    """Always a download: a report of somebody's must not run as a page of this server."""
    return {"Content-Disposition": f'attachment; filename="{row.id}-{name}"'}
