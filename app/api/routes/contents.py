"""/api/experiments/{id}/contents: which results exist, and what they depend on."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from valleyscope.app.api.cached_responses import cached_response
from valleyscope.app.api.dependencies import ExperimentId, State
from valleyscope.app.api.openapi import NOT_MODIFIED, problems
from valleyscope.app.api.schemas import Identifier, ResponseModel
from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.app.jobs.task_table import contributions_of
from valleyscope.app.storage.event_table import warnings_of
from valleyscope.landscape.json_encoding import encoded, to_json
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PlaneRecord

router = APIRouter(tags=["results"])


class PlaneContents(ResponseModel):
    """How much of a surface is computed."""

    rows: int
    columns: int
    computed: int = Field(description="points that are computed")
    splits: list[str] = Field(description="data that it is evaluated on")


class Contribution(ResponseModel):
    """What a worker computed."""

    worker: str = Field(description="host and device")
    tasks: int = Field(description="completed tasks")
    seconds: float = Field(description="time they took")


class ContentsWarning(ResponseModel):
    """Something to know before you trust the numbers."""

    minimum: str | None = Field(description="the minimum it concerns, if any")
    message: str


class Contents(ResponseModel):
    """Names of the results, and their provenance; empty before the experiment starts."""

    experiment: Identifier
    minima: list[str] = Field(description="trained minima")
    curves: list[str] = Field(description="fitted and measured curves")
    lines: list[str] = Field(description="measured lines")
    planes: dict[str, PlaneContents] = Field(description="planes with axes, even if no point is computed yet")
    verdict: bool = Field(description="whether the verdict exists")
    curvature: list[str] = Field([], description="minima whose curvature is measured")
    provenance: dict[str, Any] = Field(
        description="what the numbers depend on besides the spec: data fingerprint, seeds, library versions, "
        "BatchNorm mode, samples, machine"
    )
    workers: list[Contribution] = Field(description="workers that took part")
    warnings: list[ContentsWarning] = Field(description="such as a threshold that prunes nothing")


@router.get("/experiments/{id}/contents", response_model=Contents, responses={**NOT_MODIFIED, **problems(404)})
def contents(id: ExperimentId, request: Request, app_state: State) -> Response:
    """List the results so far, the workers that computed them, and what they depend on.

    Ask this first, then only for results that exist.
    """
    row = app_state.service.get(id)
    with app_state.service.database.read() as connection:
        workers = [Contribution.model_validate(row) for row in contributions_of(connection, id)]
        warnings = [ContentsWarning.model_validate(row) for row in warnings_of(connection, id)]

    def make(landscape: Landscape) -> bytes:
        found = Contents(
            experiment=id,
            minima=list(landscape.minima),
            curves=list(landscape.curves),
            lines=list(landscape.lines),
            planes={name: _plane(plane) for name, plane in landscape.planes.items()},
            verdict=landscape.verdict is not None,
            curvature=list(landscape.curvature),
            provenance=to_json(landscape.provenance),
            workers=workers,
            warnings=warnings,
        )
        return encoded(found.model_dump())

    if app_state.landscape_cache.tag(app_state.service.located(row, LANDSCAPE).parent) is None:
        return Response(make(Landscape(row.name, provenance={})), media_type="application/json")
    return cached_response(request, app_state, row, ("contents", workers, warnings), make)


def _plane(plane: PlaneRecord) -> PlaneContents:
    rows, columns = plane.shape
    return PlaneContents(rows=rows, columns=columns, computed=int(plane.done.sum()), splits=list(plane.splits))
