"""/api/experiments/{id}/contents: what of an experiment is computed so far, and what its numbers depend on."""

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
from valleyscope.app.api.service import Hands, Warnings
from valleyscope.app.experiments.experiment_writer import LANDSCAPE
from valleyscope.landscape.json_encoding import encoded, to_json
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PlaneRecord

router = APIRouter(tags=["results"])


class PlaneContents(ResponseModel):
    """How far a surface is."""

    rows: int
    columns: int
    computed: int = Field(description="points that are computed")
    splits: list[str] = Field(description="data that it is evaluated on")


class Contribution(ResponseModel):
    """A worker that took part."""

    worker: str = Field(description="host and device")
    tasks: int = Field(description="tasks that it completed")
    seconds: float = Field(description="time that they took")


class ContentsWarning(ResponseModel):
    """Something that people should know before they trust the numbers."""

    minimum: str | None = Field(description="the minimum that it is about, if it is about one")
    message: str


class Contents(ResponseModel):
    """The names of what is there, and the provenance. An experiment that has not begun has none of it."""

    experiment: Identifier
    minima: list[str] = Field(description="those that are trained")
    curves: list[str] = Field(description="those that are fitted and measured")
    lines: list[str] = Field(description="those that are measured")
    planes: dict[str, PlaneContents] = Field(description="those that have a frame, however little of it is computed")
    verdict: bool = Field(description="whether there is one")
    provenance: dict[str, Any] = Field(
        description="what the numbers depend on besides the spec: fingerprint of the data, seeds, versions of the "
        "libraries, BatchNorm mode, samples, machine"
    )
    workers: list[Contribution] = Field(description="who computed it")
    warnings: list[ContentsWarning] = Field(
        description="what was noticed on the way, such as a threshold that prunes nothing"
    )


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
    """What is computed so far, by whom, and what it depends on.

    Whoever watches asks this first, and then only for what is there. Before there is a landscape it is empty.
    """
    row = app_state.service.get(id)
    contributions, warnings = app_state.service.contributions(id), app_state.service.warnings(id)
    if app_state.snapshots.tag(app_state.service.located(row, LANDSCAPE).parent) is None:
        nothing = Landscape(row.name, provenance={})
        return Response(encoded(_contents(id, nothing, contributions, warnings)), media_type="application/json")
    return cached_response(
        request,
        app_state,
        row,
        ("contents", contributions, warnings),
        lambda landscape: encoded(_contents(id, landscape, contributions, warnings)),
    )


def _contents(id: str, landscape: Landscape, contributions: Hands, warnings: Warnings) -> dict[str, Any]:
    return Contents(
        experiment=id,
        minima=list(landscape.minima),
        curves=list(landscape.curves),
        lines=list(landscape.lines),
        planes={name: _plane(plane) for name, plane in landscape.planes.items()},
        verdict=landscape.verdict is not None,
        provenance=to_json(landscape.provenance),
        workers=[Contribution.model_validate(hand) for hand in contributions],
        warnings=[ContentsWarning.model_validate(warned) for warned in warnings],
    ).model_dump()


def _plane(plane: PlaneRecord) -> PlaneContents:
    rows, columns = plane.shape
    return PlaneContents(rows=rows, columns=columns, computed=int(plane.done.sum()), splits=list(plane.splits))
