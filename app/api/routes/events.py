"""/api/experiments/{id}/events: server-sent events that a client can resume."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from valleyscope.app.api.dependencies import AppState, ExperimentId, State
from valleyscope.app.api.openapi import problems
from valleyscope.app.storage.event_table import KINDS, EventRow, read_events
from valleyscope.app.storage.experiment_table import ACTIVE, Unknown

router = APIRouter(tags=["events"])

HEARTBEAT_SECONDS: Final = 15.0
_RECONNECT_MILLISECONDS = 1500
_BATCH = 500
_POLL_SECONDS = 1.0
_MEDIA_TYPE = "text/event-stream"
_EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "value for Last-Event-ID"},
        "event": {"type": "string", "enum": list(KINDS)},
        "data": {"type": "string", "description": "JSON"},
        "retry": {"type": "integer"},
    },
}


@router.get(
    "/experiments/{id}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A stream: `id`, `event` (state, progress, epoch, curve, tile, warning, error, verdict) and "
            "`data` as JSON. The stream ends when the experiment does.",
            "content": {_MEDIA_TYPE: {"itemSchema": _EVENT_SCHEMA}},
        },
        204: {"description": "The experiment has ended and there are no new events: do not reconnect"},
        **problems(404),
    },
)
async def events(
    id: ExperimentId,
    app_state: State,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", pattern=r"^\d{1,18}$", description="send the events after this one"),
    ] = None,
    after: Annotated[int, Query(ge=0, le=2**62, description="the same, for clients that cannot set a header")] = 0,
    follow: Annotated[bool, Query(description="false: send the events so far, then end")] = True,
) -> Response:
    """Follow an experiment. A client that reconnects with `Last-Event-ID` misses nothing."""
    start = int(last_event_id) if last_event_id is not None else after
    row = await run_in_threadpool(app_state.service.get, id)
    found = await run_in_threadpool(_stored_events, app_state, id, start)
    if not found and row.state not in ACTIVE and start > 0:
        return Response(status_code=204)
    return StreamingResponse(
        _stream(app_state, id, start, found, ended=row.state not in ACTIVE, follow=follow),
        media_type=_MEDIA_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(
    app_state: AppState, id: str, seen: int, found: list[EventRow], *, ended: bool, follow: bool
) -> AsyncIterator[bytes]:
    """Send events until the experiment has ended and all of them are sent.

    The events say when it ends, so that many clients need no more database queries than one.
    """
    with app_state.metrics.event_streams.track_inprogress():
        yield f"retry: {_RECONNECT_MILLISECONDS}\n\n".encode()
        while True:
            if found:
                yield b"".join(map(_frame, found))
                seen = found[-1].id
                states = [event.data["state"] for event in found if event.kind == "state"]
                ended = states[-1] not in ACTIVE if states else ended
            elif ended or not follow:
                return
            else:
                yield b": keep-alive\n\n"
                ended = await _has_ended(app_state, id)
            if ended or not follow:
                # The feed may lag behind; the last events must not be missed.
                found = await run_in_threadpool(_stored_events, app_state, id, seen)
            else:
                found = await _next(app_state, id, seen)
            if app_state.closing:
                return


async def _next(app_state: AppState, id: str, seen: int) -> list[EventRow]:
    """The next events; none when a heartbeat is due or the server stops."""
    left = HEARTBEAT_SECONDS
    while True:
        found = await app_state.service.event_feed.wait_async(id, seen, timeout=_POLL_SECONDS, limit=_BATCH)
        left -= _POLL_SECONDS
        if found or left <= 0 or app_state.closing:
            return found


def _stored_events(app_state: AppState, id: str, after: int) -> list[EventRow]:
    """Events from the database: also those that the feed has not read yet."""
    with app_state.service.database.read() as connection:
        return read_events(connection, id, after, _BATCH)


async def _has_ended(app_state: AppState, id: str) -> bool:
    try:
        row = await run_in_threadpool(app_state.service.get, id)
    except Unknown:
        return True
    return row.state not in ACTIVE


def _frame(event: EventRow) -> bytes:
    # The text is JSON on one line, so it needs no splitting.
    return f"id: {event.id}\nevent: {event.kind}\ndata: {event.text}\n\n".encode()
