"""/api/experiments/{id}/planes: add a plane through three points of an experiment that has ended."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from valleyscope.app.api.dependencies import ExperimentId, JsonBody, State
from valleyscope.app.api.openapi import LOCATION, problems
from valleyscope.app.api.problems import Problem, field_problems
from valleyscope.app.api.schemas import Identifier, ResponseModel
from valleyscope.app.api.submissions import check_limits
from valleyscope.app.experiments.amendments import plane_through, with_plane
from valleyscope.app.experiments.spec import parse_spec
from valleyscope.app.experiments.spec_parts import Name
from valleyscope.app.storage.experiment_table import ACTIVE, WrongState

router = APIRouter(tags=["experiments"])


class PlaneRequest(BaseModel):
    """The three points of the plane, and its grid."""

    model_config = ConfigDict(extra="forbid")
    through: tuple[str, str, str] = Field(
        description="three different points: minima, or bends such as valley.bend",
        examples=[["sgd", "altsdp", "control"]],
    )
    resolution: int = Field(21, ge=3, le=401, description="grid points along each axis")
    margin: float = Field(0.2, ge=0, le=10, description="space around the named points, as a share of their extent")
    name: Name | None = Field(None, description="of the plane; by default plane1, plane2, ...")
    force: bool = Field(False, description="add it even if the cost exceeds the limit")


class AddedPlane(ResponseModel):
    """The plane, and the state of the experiment that computes it."""

    experiment: Identifier
    plane: str = Field(examples=["plane1"])
    state: str


@router.post(
    "/experiments/{id}/planes",
    status_code=202,
    response_model=AddedPlane,
    dependencies=[JsonBody],
    responses={202: {"headers": LOCATION}, **problems(404, 409, 415)},
)
def add_plane(id: ExperimentId, request: PlaneRequest, response: Response, app_state: State) -> Any:
    """Add a plane through three points. Workers compute it, nothing else is computed again, and it stays.

    The experiment must have ended. A plane through the same points is not computed twice: the answer names it.
    """
    service = app_state.service
    row = service.get(id)
    if row.imported is not None:
        raise WrongState(f"experiment {id} is an uploaded landscape without its networks: it cannot get a plane")
    spec = parse_spec(row.spec)
    name = plane_through(spec, request.through)
    if name is None:
        if row.state in ACTIVE:
            raise WrongState(f"experiment {id} is {row.state}: you can add a plane once it has ended")
        plane = request.model_dump(include={"through", "resolution", "margin"}) | {"complete": "random"}
        with field_problems(request.model_dump()):
            name, amended = with_plane(spec, plane, request.name)
        if name in spec.all_planes:
            raise Problem(409, "name-taken", f"the experiment has a plane {name!r} already: use another name")
        check_limits(app_state, amended, force=request.force)
        row = service.add_plane(id, amended)
    response.headers["Location"] = f"/api/experiments/{id}/surface?plane={name}"
    return AddedPlane(experiment=id, plane=name, state=row.state)
