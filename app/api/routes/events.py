"""/api/experiments/{id}/events: what happens, as server-sent events that a client can resume."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from valleyscope.app.api.dependencies import AppState, State
from valleyscope.app.api.openapi import problems
from valleyscope.app.api.parameters import ExperimentId
from valleyscope.app.storage.event_table import KINDS, EventRow
from valleyscope.app.storage.experiment_table import ACTIVE, Unknown

router = APIRouter(tags=["events"])

HEARTBEAT_SECONDS: Final = 15.0
_RECONNECT_MILLISECONDS = 1500
_BATCH = 500
_LOOK_SECONDS = 1.0
_MEDIA_TYPE = "text/event-stream"
_EVENT_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "what Last-Event-ID names"},
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
            "`data` as JSON. It ends when the experiment has, and goes on for ever while it waits.",
            "content": {_MEDIA_TYPE: {"itemSchema": _EVENT_SCHEMA}},
        },
        204: {"description": "The experiment has ended and there is nothing new: do not reconnect"},
        **problems(404),
    },
)
async def events(
    id: ExperimentId,
    app_state: State,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", pattern=r"^\d{1,18}$", description="go on after this event"),
    ] = None,
    after: Annotated[int, Query(ge=0, le=2**62, description="the same, for those who cannot set a header")] = 0,
    follow: Annotated[bool, Query(description="false: send what there is, and end")] = True,
) -> Response:
    """Follow an experiment. A browser that loses the connection comes back and misses nothing."""
    start = int(last_event_id) if last_event_id is not None else after
    row = await run_in_threadpool(app_state.service.get, id)
    found = await run_in_threadpool(app_state.service.stored_events, id, start, _BATCH)
    if not found and row.state not in ACTIVE and start > 0:
        return Response(status_code=204)
    return StreamingResponse(
        _stream(app_state, id, start, found, over=row.state not in ACTIVE, follow=follow),
        media_type=_MEDIA_TYPE,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(
    app_state: AppState, id: str, seen: int, found: list[EventRow], *, over: bool, follow: bool
) -> AsyncIterator[bytes]:
    """Send events until the experiment is over and all of them are sent.

    Whether it is over is in the events themselves, so that a hundred watchers ask the database no more than one.
    """
    with app_state.metrics.watchers.track_inprogress():
        yield f"retry: {_RECONNECT_MILLISECONDS}\n\n".encode()
        while True:
            if found:
                yield b"".join(map(_frame, found))
                seen = found[-1].id
                states = [event.data["state"] for event in found if event.kind == "state"]
                over = states[-1] not in ACTIVE if states else over
            elif over or not follow:
                return
            else:
                yield b": still here\n\n"
                over = await _is_over(app_state, id)
            if over or not follow:
                # The poller may be behind; what ends a story must not be missed.
                found = await run_in_threadpool(app_state.service.stored_events, id, seen, _BATCH)
            else:
                found = await _next(app_state, id, seen)
            if app_state.closing:
                return


async def _next(app_state: AppState, id: str, seen: int) -> list[EventRow]:
    """The next events, or none when a heartbeat is due; looks up now and then whether the server closes."""
    left = HEARTBEAT_SECONDS
    while True:
        found = await app_state.service.next_events(id, seen, timeout=_LOOK_SECONDS, limit=_BATCH)
        left -= _LOOK_SECONDS
        if found or left <= 0 or app_state.closing:
            return found


async def _is_over(app_state: AppState, id: str) -> bool:
    try:
        row = await run_in_threadpool(app_state.service.get, id)
    except Unknown:
        return True
    return row.state not in ACTIVE


def _frame(event: EventRow) -> bytes:
    # The text is JSON on one line, so it needs no splitting.
    return f"id: {event.id}\nevent: {event.kind}\ndata: {event.text}\n\n".encode()
