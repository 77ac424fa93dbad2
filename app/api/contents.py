"""/api/experiments/{id}/contents: what of an experiment is computed so far, and what its numbers depend on."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from app.api.answers import answer
from app.api.documentation import NOT_MODIFIED, problems
from app.api.numbers import encoded, jsonable
from app.api.requests import ExperimentId
from app.api.schemas import Identifier, Shape
from app.api.service import Hands, Warnings
from app.api.wiring import Wired
from app.experiments.experiment import LANDSCAPE
from landscape.records import PlaneRecord
from landscape.store import Landscape

router = APIRouter(tags=["results"])


class PlaneContents(Shape):
    """How far a surface is."""

    rows: int
    columns: int
    computed: int = Field(description="points that are computed")
    splits: list[str] = Field(description="data that it is evaluated on")


class Hand(Shape):
    """A worker that took part."""

    worker: str = Field(description="host and device")
    tasks: int = Field(description="tasks that it completed")
    seconds: float = Field(description="time that they took")


class Warned(Shape):
    """Something that people should know before they trust the numbers."""

    minimum: str | None = Field(description="the minimum that it is about, if it is about one")
    message: str


class Contents(Shape):
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
    workers: list[Hand] = Field(description="who computed it")
    warnings: list[Warned] = Field(description="what was noticed on the way, such as a threshold that prunes nothing")


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
def contents(id: ExperimentId, request: Request, wiring: Wired) -> Response:
    """What is computed so far, by whom, and what it depends on.

    Whoever watches asks this first, and then only for what is there. Before there is a landscape it is empty.
    """
    row = wiring.service.get(id)
    hands, warnings = wiring.service.hands(id), wiring.service.warnings(id)
    if wiring.snapshots.tag(wiring.service.located(row, LANDSCAPE).parent) is None:
        nothing = Landscape(row.name, provenance={})
        return Response(encoded(_contents(id, nothing, hands, warnings)), media_type="application/json")
    return answer(
        request,
        wiring,
        row,
        ("contents", hands, warnings),
        lambda landscape: encoded(_contents(id, landscape, hands, warnings)),
    )


def _contents(id: str, landscape: Landscape, hands: Hands, warnings: Warnings) -> dict[str, Any]:
    return Contents(
        experiment=id,
        minima=list(landscape.minima),
        curves=list(landscape.curves),
        lines=list(landscape.lines),
        planes={name: _plane(plane) for name, plane in landscape.planes.items()},
        verdict=landscape.verdict is not None,
        provenance=jsonable(landscape.provenance),
        workers=[Hand.model_validate(hand) for hand in hands],
        warnings=[Warned.model_validate(warned) for warned in warnings],
    ).model_dump()


def _plane(plane: PlaneRecord) -> PlaneContents:
    rows, columns = plane.shape
    return PlaneContents(rows=rows, columns=columns, computed=int(plane.done.sum()), splits=list(plane.splits))
