"""Answers that are made from a snapshot of a landscape: ETag, 304, and bytes that are made and compressed once."""

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

_WORTH_ZIPPING = 1000
_LONGEST_REASON = 300


def open_snapshot(app_state: AppState, row: ExperimentRow) -> Snapshot:
    """The latest snapshot of an experiment; a problem where there is none, or none that can be read."""
    try:
        snapshot = app_state.snapshots.open(app_state.service.located(row, LANDSCAPE).parent)
    except StoreUnavailable:
        raise
    except (NotALandscape, DamagedLandscape, OSError) as error:
        reason = str(error).rpartition("/")[2]  # not where it is on the disk
        raise Problem(
            503, "damaged-landscape", f"landscape.h5 of this experiment cannot be read ({reason}): retry it"
        ) from error
    if snapshot is None:
        raise not_available("it has no results", row)
    return snapshot


def not_available(what: str, row: ExperimentRow, *, of_two: bool = False) -> Problem:
    """A result that is not there: not yet; or none, and why. One that is `of_two` compares minima."""
    if of_two and len(row.spec["minima"]) < 2:
        return _none(f"{what}: that takes two minima, and the experiment has one", row)
    if row.state in ACTIVE:
        return Problem(404, "not-yet", f"{what} yet: the experiment is {row.state} ({row.stage})", state=row.state)
    reason = {
        "failed": f"the experiment failed ({(row.error or 'without a reason')[:_LONGEST_REASON]})",
        "cancelled": "the experiment was cancelled before",
    }.get(row.state, "the experiment is done, and the file is lost")
    return _none(f"{what}: {reason}; retry it to have what is missing", row)


def _none(detail: str, row: ExperimentRow) -> Problem:
    return Problem(404, "none", detail, state=row.state)


def cached_response(
    request: Request,
    app_state: AppState,
    row: ExperimentRow,
    parameters: tuple[object, ...],
    make: Callable[[Landscape], bytes],
    *,
    media_type: str = "application/json",
    headers: dict[str, str] | None = None,
) -> Response:
    """Send what `make` makes of the snapshot, unless the client has it already.

    The ETag names the snapshot and all that the answer depends on besides.
    """
    tag = app_state.snapshots.tag(app_state.service.located(row, LANDSCAPE).parent)
    if tag is not None and _etag(tag, parameters, media_type) in _tags(request):
        return Response(status_code=304, headers={"ETag": _etag(tag, parameters, media_type), **_CACHING})
    snapshot = open_snapshot(app_state, row)
    etag = _etag(snapshot.tag, parameters, media_type)
    body = app_state.snapshots.body(
        (row.id, snapshot.tag, media_type, repr(parameters)), lambda: make(snapshot.landscape)
    )
    sent = {"ETag": etag, **_CACHING, **(headers or {})}
    if media_type == "application/json" and len(body.plain) >= _WORTH_ZIPPING and _accepts_gzip(request):
        return Response(body.zipped, media_type=media_type, headers={**sent, "Content-Encoding": "gzip"})
    return Response(body.plain, media_type=media_type, headers=sent)


_CACHING = {"Cache-Control": "no-cache, private", "Vary": "Accept, Accept-Encoding"}


def _etag(tag: str, parameters: tuple[object, ...], media_type: str) -> str:
    # Weak, since the compressed form has the same tag.
    text = f"{tag} {parameters!r} {media_type}"
    return f'W/"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'


def _tags(request: Request) -> list[str]:
    given = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    return [tag if tag.startswith("W/") else f"W/{tag}" for tag in given if tag]


def _accepts_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")
