"""Responses made from the landscape of an experiment: ETag, 304, and bodies that are made and compressed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from fastapi import Request
from starlette.responses import Response

from valleyscope.app.api.dependencies import AppState
from valleyscope.app.api.problems import Problem
from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.storage.experiment_table import ACTIVE, ExperimentRow
from valleyscope.app.storage.landscape_cache import Snapshot
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape, NotALandscape

_MIN_GZIP_BYTES = 1000
_MAX_REASON = 300


def open_snapshot(app_state: AppState, row: ExperimentRow) -> Snapshot:
    """The latest landscape of an experiment; raises a problem if it is missing or cannot be read."""
    try:
        snapshot = app_state.landscape_cache.open(app_state.service.located(row, LANDSCAPE).parent)
    except StoreUnavailable:
        raise
    except (NotALandscape, DamagedLandscape, OSError) as error:
        reason = str(error).rpartition("/")[2]  # without the path on the server
        detail = f"landscape.h5 of this experiment cannot be read ({reason}): retry the experiment"
        raise Problem(503, "damaged-landscape", detail) from error
    if snapshot is None:
        raise not_available("there are no results", row)
    return snapshot


def not_available(what: str, row: ExperimentRow, *, of_two: bool = False) -> Problem:
    """A missing result: not computed yet, or never, with the reason. `of_two` results need two minima."""
    if row.imported is not None:
        return Problem(404, "none", f"{what}: the uploaded files do not have it", state=row.state)
    if of_two and len(row.spec["minima"]) < 2:
        return Problem(404, "none", f"{what}: it needs two minima, the experiment has one", state=row.state)
    if row.state in ACTIVE:
        return Problem(404, "not-yet", f"{what} yet: the experiment is {row.state} ({row.stage})", state=row.state)
    reason = {
        "failed": f"the experiment failed ({(row.error or 'unknown reason')[:_MAX_REASON]})",
        "cancelled": "the experiment was cancelled",
    }.get(row.state, "the experiment is done, but the file is lost")
    return Problem(404, "none", f"{what}: {reason}; retry the experiment to compute it", state=row.state)


def cached_response(
    request: Request,
    app_state: AppState,
    row: ExperimentRow,
    parameters: tuple[object, ...],
    make: Callable[[Landscape], bytes],
    *,
    media_type: str = "application/json",
) -> Response:
    """Send the body that `make` returns, or 304 if the client has it.

    The ETag covers the landscape and the `parameters`.
    """
    tag = app_state.landscape_cache.tag(app_state.service.located(row, LANDSCAPE).parent)
    if tag is not None and _etag(tag, parameters, media_type) in _known_tags(request):
        return Response(status_code=304, headers={"ETag": _etag(tag, parameters, media_type), **_CACHING})
    snapshot = open_snapshot(app_state, row)
    body = app_state.landscape_cache.body(
        (row.id, snapshot.tag, media_type, repr(parameters)), lambda: make(snapshot.landscape)
    )
    accepts_gzip = "gzip" in request.headers.get("accept-encoding", "")
    headers = {"ETag": _etag(snapshot.tag, parameters, media_type), **_CACHING}
    if media_type == "application/json" and len(body.plain) >= _MIN_GZIP_BYTES and accepts_gzip:
        return Response(body.zipped, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(body.plain, media_type=media_type, headers=headers)


_CACHING = {"Cache-Control": "no-cache, private", "Vary": "Accept, Accept-Encoding"}


def _etag(tag: str, parameters: tuple[object, ...], media_type: str) -> str:
    # Weak: the compressed form has the same tag.
    text = f"{tag} {parameters!r} {media_type}"
    return f'W/"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'


def _known_tags(request: Request) -> list[str]:
    given = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    return [tag if tag.startswith("W/") else f"W/{tag}" for tag in given if tag]
