"""/api/experiments: submit, list, read, cancel, retry and delete experiments, and ask what one would cost."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Query, Response
from pydantic import ValidationError

from valleyscope.app.api.dependencies import AppState, State
from valleyscope.app.api.openapi import LOCATION, links, problems
from valleyscope.app.api.parameters import ExperimentId, JsonBody
from valleyscope.app.api.problems import Problem, invalid
from valleyscope.app.api.schemas import Cost, Experiment, ExperimentPage
from valleyscope.app.api.serializers import detail, summary
from valleyscope.app.api.submissions import Submitted, admitted, spec_of
from valleyscope.app.storage.experiment_table import ACTIVE, BadCursor, ExperimentState, KeyReused

router = APIRouter(tags=["experiments"])

_NEXT = (
    *("read", "cancel", "retry", "delete", "events", "contents", "minima", "surface", "profile", "verdict"),
    *("figure", "list_files", "download"),
)

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="the same key with the same spec gives the same experiment, however often it is sent",
    ),
]


@router.post(
    "/experiments",
    status_code=202,
    response_model=Experiment,
    dependencies=[JsonBody],
    responses={202: {"headers": LOCATION, "links": links(*_NEXT)}, **problems(415)},
)
def submit(submission: Submitted, response: Response, app_state: State, idempotency_key: IdempotencyKey = None) -> Any:
    """Submit an experiment: a spec, or a recipe with overrides.

    It is in the queue, and will be run, when the answer arrives.
    """
    spec = spec_of(submission)
    admitted(app_state, spec, force=submission.force)
    try:
        known = None if idempotency_key is None else app_state.service.submitted(idempotency_key, spec)
        if known is None:
            _make_room(app_state)
        row = known or app_state.service.submit(spec, key=idempotency_key, priority=submission.priority)
    except KeyReused as error:
        found = [{"loc": ("header", "Idempotency-Key"), "type": "reused", "msg": str(error), "input": idempotency_key}]
        raise invalid(found) from error
    response.headers["Location"] = f"/api/experiments/{row.id}"
    return detail(row)


def _make_room(app_state: AppState) -> None:
    """Refuse where too many experiments wait or run, or their files could not be written."""
    app_state.readiness.require_home()
    states = app_state.service.count()
    active = sum(states[state] for state in ACTIVE)
    if active >= app_state.settings.max_queue:
        raise Problem(
            429,
            "queue-full",
            f"{active} experiments wait or run, the limit here is {app_state.settings.max_queue}: try again later",
            headers={"Retry-After": "60"},
        )


@router.get(
    "/experiments",
    response_model=ExperimentPage,
    responses={
        200: {"headers": {"Link": {"schema": {"type": "string"}, "description": "the next page"}}},
        **problems(),
    },
)
def list_experiments(
    app_state: State,
    state: Annotated[ExperimentState | None, Query(description="only those in this state")] = None,
    status: Annotated[ExperimentState | None, Query(description="another name of `state`")] = None,
    search: Annotated[
        str | None, Query(max_length=120, pattern=r"^[^\x00-\x1f]*$", description="part of a name", examples=["digits"])
    ] = None,
    cursor: Annotated[str | None, Query(max_length=100, description="`next` of the page before")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="most experiments on a page")] = 50,
) -> Any:
    """List experiments, newest first."""
    if None not in (state, status) and state != status:
        message = f"is another name of state, which is {state!r} here: give one of them"
        raise invalid([{"loc": ("query", "status"), "type": "status", "msg": message, "input": status}])
    try:
        page = app_state.service.list(state=state or status, search=search or None, after=cursor, limit=limit)
    except BadCursor as error:
        message = "is no cursor of this server: use `next` of the page before"
        raise invalid([{"loc": ("query", "cursor"), "type": "cursor", "msg": message, "input": cursor}]) from error
    found = ExperimentPage(items=[summary(row) for row in page.items], next=page.after)
    # As bytes, since FastAPI would validate every row once more.
    response = Response(found.model_dump_json(), media_type="application/json")
    if page.after is not None:
        asked = {"state": state, "status": status, "search": search, "limit": limit, "cursor": page.after}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        response.headers["Link"] = f'</api/experiments?{query}>; rel="next"'
    return response


@router.get("/experiments/{id}", response_model=Experiment, responses=problems(404))
def read(id: ExperimentId, app_state: State) -> Any:
    """Read an experiment: its state, progress, verdict and spec."""
    return detail(app_state.service.get(id))


@router.delete("/experiments/{id}", status_code=204, responses=problems(404, 409))
def delete(id: ExperimentId, app_state: State) -> None:
    """Delete an experiment that is not running, with all its files."""
    app_state.service.delete(id)


@router.post("/experiments/{id}/cancel", status_code=202, response_model=Experiment, responses=problems(404, 409))
def cancel(id: ExperimentId, app_state: State) -> Any:
    """Cancel an experiment that is queued or running; what is computed stays."""
    app_state.service.cancel(id)
    return detail(app_state.service.get(id))


@router.post("/experiments/{id}/retry", status_code=202, response_model=Experiment, responses=problems(404, 409))
def retry(id: ExperimentId, app_state: State) -> Any:
    """Run an experiment that failed, was cancelled or lost files on from where it stopped."""
    if app_state.service.get(id).state not in ACTIVE:
        _make_room(app_state)
    app_state.service.retry(id)
    return detail(app_state.service.get(id))


@router.post("/estimate", response_model=Cost, dependencies=[JsonBody], responses=problems(415))
def estimate(submission: Submitted, app_state: State) -> Any:
    """Tell what an experiment would cost, and what its thresholds would reach; nothing is submitted."""
    spec = spec_of(submission)
    try:
        return Cost.of(app_state.submission_limits.estimate(spec), app_state.settings.max_gpu_hours)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False), spec.to_json()) from error
