"""/api/experiments/{id}/contents: which results exist, and what they depend on."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from valleyscope.app.api.cached_responses import cached_response
from valleyscope.app.api.dependencies import State
from valleyscope.app.api.openapi import NOT_MODIFIED, problems
from valleyscope.app.api.parameters import ExperimentId
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
    provenance: dict[str, Any] = Field(
        description="what the numbers depend on besides the spec: data fingerprint, seeds, library versions, "
        "BatchNorm mode, samples, machine"
    )
    workers: list[Contribution] = Field(description="workers that took part")
    warnings: list[ContentsWarning] = Field(description="such as a threshold that prunes nothing")


_EXAMPLE = {
    "experiment": "019a8c3f2be5d0c1",
    "minima": ["sgd", "altsdp", "control"],
    "curves": ["valley"],
    "lines": ["sgd-altsdp", "sgd-control"],
    "planes": {"valley": {"rows": 41, "columns": 41, "computed": 1681, "splits": ["train", "test"]}},
    "verdict": True,
    "provenance": {
        "fingerprint": "d4d5c4fe160a9f8a7d262092885622a03f424d614a0aa5f0249a0a1b1351e87c",
        "dataset": "digits",
        "seeds": {"sgd": {"initialisation": 0, "order": 0, "augmentation": 0}},
        "versions": {"python": "3.11.7", "valleyscope": "0.1.0", "torch": "2.13.0"},
        "batch_norm": "population",
        "samples": "all",
        "machine": "Linux x86_64, 2 cores",
    },
    "workers": [{"worker": "lab-7, cpu", "tasks": 23, "seconds": 71.3}],
    "warnings": [],
}


@router.get(
    "/experiments/{id}/contents",
    response_model=Contents,
    responses={200: {"content": {"application/json": {"example": _EXAMPLE}}}, **NOT_MODIFIED, **problems(404)},
)
def contents(id: ExperimentId, request: Request, app_state: State) -> Response:
    """List the results so far, the workers that computed them, and what they depend on.

    Ask this first, then only for results that exist.
    """
    row = app_state.service.experiment_table.get(id)
    with app_state.service.database.read() as connection:
        workers = [Contribution.model_validate(row) for row in contributions_of(connection, id)]
        warnings = [ContentsWarning.model_validate(row) for row in warnings_of(connection, id)]

    def make(landscape: Landscape) -> bytes:
        return encoded(_contents(id, landscape, workers, warnings))

    if app_state.landscape_cache.tag(app_state.service.located(row, LANDSCAPE).parent) is None:
        return Response(make(Landscape(row.name, provenance={})), media_type="application/json")
    return cached_response(request, app_state, row, ("contents", workers, warnings), make)


def _contents(
    id: str, landscape: Landscape, workers: list[Contribution], warnings: list[ContentsWarning]
) -> dict[str, Any]:
    return Contents(
        experiment=id,
        minima=list(landscape.minima),
        curves=list(landscape.curves),
        lines=list(landscape.lines),
        planes={name: _plane(plane) for name, plane in landscape.planes.items()},
        verdict=landscape.verdict is not None,
        provenance=to_json(landscape.provenance),
        workers=workers,
        warnings=warnings,
    ).model_dump()


def _plane(plane: PlaneRecord) -> PlaneContents:
    rows, columns = plane.shape
    return PlaneContents(rows=rows, columns=columns, computed=int(plane.done.sum()), splits=list(plane.splits))
