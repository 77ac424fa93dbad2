"""/api/experiments: submit, list, read, describe, cancel, retry, delete, restore; /api/estimate: the cost of a spec."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Query, Response

from valleyscope.app.api.cost_schemas import Cost
from valleyscope.app.api.dependencies import AppState, ExperimentId, JsonBody, State
from valleyscope.app.api.openapi import LOCATION, links, problems
from valleyscope.app.api.problems import Problem, field_problems, invalid_parameter
from valleyscope.app.api.schemas import Description, Experiment, ExperimentPage
from valleyscope.app.api.serializers import detail, summary
from valleyscope.app.api.submissions import Submitted, check_limits, spec_of
from valleyscope.app.storage.experiment_list import NEWEST_FIRST, SORT_PATTERN
from valleyscope.app.storage.experiment_table import ACTIVE, BadCursor, ExperimentState, KeyReused

router = APIRouter(tags=["experiments"])

RESULTS = (
    "events",
    "contents",
    "minima",
    "surface",
    "profile",
    "matrix",
    "verdict",
    "figure",
    "list_files",
    "download",
)
_NEXT = ("read", "cancel", "retry", "delete", *RESULTS)

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="repeated requests with the same key and spec return the same experiment",
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
    """Submit an experiment: a spec, or a recipe with overrides. It is queued when you get the response."""
    spec = spec_of(submission)
    check_limits(app_state, spec, force=submission.force)
    try:
        known = None if idempotency_key is None else app_state.service.submitted(idempotency_key, spec)
        if known is None:
            _check_capacity(app_state)
        row = known or app_state.service.submit(spec, key=idempotency_key, priority=submission.priority)
    except KeyReused as error:
        raise invalid_parameter("header", "Idempotency-Key", str(error), idempotency_key) from error
    response.headers["Location"] = f"/api/experiments/{row.id}"
    return detail(row)


def _check_capacity(app_state: AppState) -> None:
    """Refuse new work if the home cannot be written or too many experiments are active."""
    app_state.readiness.require_home()
    states = app_state.service.experiment_table.count()
    active, limit = sum(states[state] for state in ACTIVE), app_state.settings.max_queue
    if active >= limit:
        detail = f"{active} experiments are queued or running, the limit is {limit}: try again later"
        raise Problem(429, "queue-full", detail, headers={"Retry-After": "60"})


@router.get(
    "/experiments",
    response_model=ExperimentPage,
    responses={
        200: {"headers": {"Link": {"schema": {"type": "string"}, "description": "next page"}}},
        **problems(),
    },
)
def list_experiments(
    app_state: State,
    state: Annotated[ExperimentState | None, Query(description="only those in this state")] = None,
    status: Annotated[ExperimentState | None, Query(description="alias of `state`")] = None,
    search: Annotated[
        str | None,
        Query(
            max_length=120,
            pattern=r"^[^\x00-\x1f]*$",
            description="in the name, a tag or the note",
            examples=["digits"],
        ),
    ] = None,
    tag: Annotated[
        str | None, Query(max_length=40, pattern=r"^[^\x00-\x1f]*$", description="only those with it")
    ] = None,
    trash: Annotated[bool, Query(description="those in the trash instead")] = False,
    ids: Annotated[
        str | None,
        Query(
            max_length=16 * 200 + 199,
            pattern=r"^[0-9a-f]{16}(,[0-9a-f]{16})*$",
            description="only these, with commas between",
            examples=["019a8c3f2be5d0c1"],
        ),
    ] = None,
    sort: Annotated[
        str, Query(pattern=SORT_PATTERN, description="a field; with - the largest first", examples=["-rise"])
    ] = NEWEST_FIRST,
    cursor: Annotated[str | None, Query(max_length=6000, description="`next` from the previous page")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="experiments per page")] = 50,
) -> Any:
    """List experiments, by default newest first. Those without a value of the sort field come last."""
    if None not in (state, status) and state != status:
        message = f"is an alias of state, which is {state!r}: pass only one of them"
        raise invalid_parameter("query", "status", message, status)
    try:
        page = app_state.service.experiment_table.list(
            state=state or status,
            search=search or None,
            tag=tag or None,
            trash=trash,
            ids=None if ids is None else tuple(ids.split(",")),
            sort=sort,
            after=cursor,
            limit=limit,
        )
    except BadCursor as error:
        raise invalid_parameter("query", "cursor", str(error), cursor) from error
    found = ExperimentPage(items=[summary(row) for row in page.items], next=page.after)
    # As bytes: FastAPI would validate every row again.
    response = Response(found.model_dump_json(), media_type="application/json")
    if page.after is not None:
        asked: dict[str, Any] = {
            "state": state,
            "status": status,
            "search": search,
            "tag": tag,
            "ids": ids,
            "sort": sort,
        }
        asked |= {"trash": "true" if trash else None, "limit": limit, "cursor": page.after}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        response.headers["Link"] = f'</api/experiments?{query}>; rel="next"'
    return response


@router.get("/experiments/{id}", response_model=Experiment, responses=problems(404))
def read(id: ExperimentId, app_state: State) -> Any:
    """Read the state, progress, verdict and spec of an experiment."""
    return detail(app_state.service.get(id))


@router.delete("/experiments/{id}", status_code=204, responses=problems(404, 409))
def delete(
    id: ExperimentId,
    app_state: State,
    permanent: Annotated[bool, Query(description="delete it with its files at once, also from the trash")] = False,
) -> None:
    """Move an experiment to the trash; after a day it is deleted. Cancel it first if it is queued or running."""
    app_state.service.delete(id, permanent=permanent)


@router.patch("/experiments/{id}", response_model=Experiment, dependencies=[JsonBody], responses=problems(404, 415))
def describe(id: ExperimentId, description: Description, app_state: State) -> Any:
    """Change the name, the tags or the note of an experiment. Its spec and its files keep the name they have."""
    return detail(app_state.service.describe(id, description.given()))


@router.post("/experiments/{id}/restore", response_model=Experiment, responses=problems(404))
def restore(id: ExperimentId, app_state: State) -> Any:
    """Take an experiment out of the trash."""
    return detail(app_state.service.restore(id))


@router.post("/experiments/{id}/cancel", status_code=202, response_model=Experiment, responses=problems(404, 409))
def cancel(id: ExperimentId, app_state: State) -> Any:
    """Cancel a queued or running experiment. Its results so far stay."""
    return detail(app_state.service.cancel(id))


@router.post("/experiments/{id}/retry", status_code=202, response_model=Experiment, responses=problems(404, 409))
def retry(id: ExperimentId, app_state: State) -> Any:
    """Continue an experiment that failed, was cancelled or lost files."""
    if app_state.service.get(id).state not in ACTIVE:
        _check_capacity(app_state)
    return detail(app_state.service.retry(id))


@router.post("/estimate", response_model=Cost, dependencies=[JsonBody], responses=problems(415))
def estimate(submission: Submitted, app_state: State) -> Any:
    """Estimate the cost of an experiment and the reach of its thresholds. Nothing is submitted."""
    spec = spec_of(submission)
    with field_problems(spec.to_json()):
        cost = app_state.submission_limits.estimate(spec)
    return Cost.of(cost, app_state.settings.max_gpu_hours, app_state.service.devices())
