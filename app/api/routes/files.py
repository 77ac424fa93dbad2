"""/api/experiments/{id}/files: list and download the files of an experiment, whole or in part (Range).

Starlette's FileResponse is not used: it opens the file by name after it has sent size and ETag, and running experiments
replace their files. It also answers 400 to a Range that RFC 9110 lets a server ignore.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
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
from valleyscope.app.api.dependencies import AppState, ExperimentId, State
from valleyscope.app.api.openapi import NOT_MODIFIED, problems
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.schemas import ResponseModel
from valleyscope.app.experiments.experiment_writer import LANDSCAPE, REPORT, SPEC, VERDICT, compact_files
from valleyscope.app.storage.experiment_table import ExperimentRow

router = APIRouter(tags=["results"])

SURFACE = "surface.csv"
MATRIX = "matrix.csv"
CURVATURE = ("curvature.csv", "factors.csv", "theorem.csv")
_MADE = (SURFACE, MATRIX, *CURVATURE)
"""Made on request from the landscape."""
_TYPES = {
    ".h5": "application/x-hdf5",
    ".safetensors": "application/octet-stream",
    ".onnx": "application/octet-stream",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
}
_CHUNK = 256 * 1024
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_STORED_FILE = re.compile(rf"/api/experiments/[^/]+/files/(?!(?:{'|'.join(map(re.escape, _MADE))})$)")
_BYTES: Final[dict[str, Any]] = {
    kind.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}} for kind in _TYPES.values()
}


class Compression(GZipMiddleware):
    """Does not compress stored files: ETag and Range refer to the bytes on the disk."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _STORED_FILE.match(scope["path"]):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class File(ResponseModel):
    """A file to download."""

    name: str
    size: int | None = Field(description="bytes; null for surface.csv, matrix.csv and others that are made on request")
    link: str


class Files(ResponseModel):
    items: list[File]


@router.get("/experiments/{id}/files", response_model=Files, responses=problems(404))
def list_files(id: ExperimentId, app_state: State) -> Files:
    """List the files that exist so far."""
    row = app_state.service.get(id)
    present = app_state.service.files(row)
    found = []
    for name in _names(row):
        if (LANDSCAPE if name in _MADE else name) in present:
            size = None if name in _MADE else present[name]
            found.append(File(name=name, size=size, link=f"/api/experiments/{id}/files/{name}"))
    return Files(items=found)


@router.get(
    "/experiments/{id}/files/{name}",
    response_class=Response,
    responses={
        200: {"description": "The file", "content": {**_BYTES, "application/json": {"schema": {"type": "object"}}}},
        206: {"description": "The requested part of the file", "content": _BYTES},
        **NOT_MODIFIED,
        **problems(404, 416),
    },
)
async def download(
    id: ExperimentId,
    name: Annotated[str, PathParameter(max_length=100, description="name of the file", examples=[LANDSCAPE])],
    request: Request,
    app_state: State,
) -> Response:
    """Download landscape.h5, <minimum>.safetensors, report.html, surface.csv, matrix.csv, spec.json or verdict.json.

    <minimum>.compact.safetensors and .onnx are networks without their zero groups; curvature.csv, factors.csv and
    theorem.csv have the curvature of the minima.
    """
    row = await run_in_threadpool(app_state.service.get, id)
    if name not in _names(row):
        raise Problem(404, "unknown-file", f"file {name[:100]!r} does not exist: use one of {', '.join(_names(row))}")
    if name in _MADE:
        if name in CURVATURE:
            return await run_in_threadpool(_curvature, app_state, row, name)
        return await run_in_threadpool(_surface if name == SURFACE else _matrix, app_state, row)
    path = await run_in_threadpool(app_state.service.located, row, name)
    return await run_in_threadpool(_file, path, row, request)


def _names(row: ExperimentRow) -> list[str]:
    """The files that an experiment can have; clients can name no others. Two minima have one line, and no matrix."""
    made: tuple[str, ...] = (SURFACE, MATRIX) if len(row.spec["minima"]) > 2 else (SURFACE,)
    made += CURVATURE if row.spec.get("curvature") is not None else ()
    minima = () if row.imported is not None else row.spec["minima"]
    weights = [f"{minimum}.safetensors" for minimum in minima]
    compact = [name for minimum in minima for name in compact_files(minimum)]
    return [LANDSCAPE, REPORT, *made, SPEC, VERDICT, *weights, *compact]


def _surface(app_state: AppState, row: ExperimentRow) -> Response:
    from valleyscope.landscape.export.csv_tables import surface_chunks  # slow: loads plotly

    landscape = open_snapshot(app_state, row).landscape
    return StreamingResponse(
        iterate_in_threadpool(surface_chunks(landscape)), media_type=_TYPES[".csv"], headers=_disposition(row, SURFACE)
    )


def _matrix(app_state: AppState, row: ExperimentRow) -> Response:
    from valleyscope.landscape.export.csv_tables import matrix_csv  # slow: loads plotly

    landscape = open_snapshot(app_state, row).landscape
    return Response(matrix_csv(landscape), media_type=_TYPES[".csv"], headers=_disposition(row, MATRIX))


def _curvature(app_state: AppState, row: ExperimentRow, name: str) -> Response:
    from valleyscope.landscape.export.csv_tables import curvature_csv  # slow: loads plotly

    landscape = open_snapshot(app_state, row).landscape
    return Response(curvature_csv(landscape, name), media_type=_TYPES[".csv"], headers=_disposition(row, name))


def _file(path: Path, row: ExperimentRow, request: Request) -> Response:
    """Send a file through one descriptor, so that replacing the file does not mix two versions."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise not_available(f"{path.name} does not exist", row, of_two=path.name == VERDICT) from None
    with ExitStack() as on_error:
        on_error.callback(file.close)
        state = os.fstat(file.fileno())
        etag = f'"{state.st_mtime_ns:x}-{state.st_ino:x}-{state.st_size:x}"'
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={"ETag": etag})
        part = _requested_range(request, state.st_size, etag)
        start, end = part or (0, state.st_size)
        headers = {"ETag": etag, "Accept-Ranges": "bytes", "Content-Length": str(end - start)}
        if part is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{state.st_size}"
        on_error.pop_all()
    headers |= _disposition(row, path.name)
    return StreamingResponse(_read(file, start, end), 206 if part else 200, headers, _TYPES[path.suffix])


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


def _requested_range(request: Request, size: int, etag: str) -> tuple[int, int] | None:
    """Start and end of the requested part; None for the whole file.

    An invalid Range, or one with several parts, is ignored, as RFC 9110 allows.
    """
    requested = request.headers.get("range", "")
    found = _RANGE.fullmatch(requested.strip())
    if found is None or found.groups() == ("", "") or request.headers.get("if-range", etag) != etag:
        return None
    first, last = found.groups()
    if first and last and int(last) < int(first):
        return None
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= end:
        detail = f"range {requested!r} is outside of the file, which has {size} bytes"
        raise Problem(416, "no-such-bytes", detail, headers={"Content-Range": f"bytes */{size}"})
    return start, end


def _disposition(row: ExperimentRow, name: str) -> dict[str, str]:
    """Always a download: the browser must not open a report as a page of this server."""
    return {"Content-Disposition": f'attachment; filename="{row.id}-{name}"'}
