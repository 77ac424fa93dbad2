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
from app.api.wiring import Wired
from landscape.records import PlaneRecord
from landscape.store import Landscape

router = APIRouter(tags=["results"])


class PlaneContents(Shape):
    """How far a surface is."""

    rows: int
    columns: int
    computed: int = Field(description="points that are computed")
    splits: list[str] = Field(description="data that it is evaluated on")


class Contents(Shape):
    """The names of what is there, and the provenance. An experiment that has not begun has none of it."""

    experiment: Identifier
    minima: list[str]
    curves: list[str]
    lines: list[str]
    planes: dict[str, PlaneContents]
    verdict: bool = Field(description="whether there is one")
    provenance: dict[str, Any] = Field(description="data fingerprint, seeds, versions, BatchNorm mode, machine")
    updated: str | None = Field(description="time of the snapshot")


@router.get("/experiments/{id}/contents", response_model=Contents, responses={**NOT_MODIFIED, **problems(404)})
def contents(id: ExperimentId, request: Request, wiring: Wired) -> Response:
    """What is computed so far. Whoever watches asks this first, and then only for what is there."""
    row = wiring.service.get(id)
    if wiring.snapshots.tag(wiring.service.directory(id)) is None:
        return Response(encoded(_contents(id, None)), media_type="application/json")
    return answer(request, wiring, row, ("contents",), lambda landscape: encoded(_contents(id, landscape)))


def _contents(id: str, landscape: Landscape | None) -> dict[str, Any]:
    if landscape is None:
        return Contents(
            experiment=id, minima=[], curves=[], lines=[], planes={}, verdict=False, provenance={}, updated=None
        ).model_dump()
    return Contents(
        experiment=id,
        minima=list(landscape.minima),
        curves=list(landscape.curves),
        lines=list(landscape.lines),
        planes={name: _plane(plane) for name, plane in landscape.planes.items()},
        verdict=landscape.verdict is not None,
        provenance=jsonable(landscape.provenance),
        updated=landscape.updated or None,
    ).model_dump()


def _plane(plane: PlaneRecord) -> PlaneContents:
    rows, columns = plane.shape
    return PlaneContents(rows=rows, columns=columns, computed=int(plane.done.sum()), splits=list(plane.splits))
