"""/api/experiments/{id}/figure: ready-made plotly figures of what is computed so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from valleyscope.app.api.cached_responses import cached_response, not_available
from valleyscope.app.api.dependencies import State
from valleyscope.app.api.openapi import NOT_MODIFIED, problems
from valleyscope.app.api.parameters import ExperimentId
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.routes.results import PlaneName, Split, Value, find_plane
from valleyscope.app.storage.experiment_table import ExperimentRow
from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord, recorded

if TYPE_CHECKING:
    import plotly.graph_objects as go

router = APIRouter(tags=["results"])

Kind = Literal["contour", "surface3d", "profile", "training", "sparsity", "paper"]
Quantity = Literal["loss", "accuracy", "sparsity", "zero_groups", "threshold", "angle", "learning_rate"]


class FigureQuery:
    """Which figure a client wants, and how."""

    def __init__(
        self,
        kind: Annotated[Kind, Query(description="what it shows")] = "contour",
        plane: PlaneName = None,
        split: Split = "train",
        value: Value = "loss",
        log: Annotated[bool | None, Query(description="logarithmic scale; each kind has its own default")] = None,
        clip: Annotated[
            float | None, Query(gt=0, lt=1e300, description="end of the colour scale, in nats or as a share")
        ] = None,
        quantity: Annotated[Quantity, Query(description="of the training")] = "loss",
        theme: Annotated[Literal["light", "dark"], Query()] = "light",
    ) -> None:
        self.kind = kind
        self.plane = plane
        self.split = split
        self.value = value
        self.log = log
        self.clip = clip
        self.quantity = quantity
        self.theme = theme


@router.get(
    "/experiments/{id}/figure",
    responses={
        200: {
            "description": "A plotly figure: data and layout",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["data", "layout"],
                        "properties": {"data": {"type": "array", "items": {}}, "layout": {"type": "object"}},
                    }
                }
            },
        },
        **NOT_MODIFIED,
        **problems(404),
    },
)
def figure(id: ExperimentId, request: Request, app_state: State, wish: Annotated[FigureQuery, Depends()]) -> Response:
    """A plotly figure of the landscape, the training or the sparsity, in the house style."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        drawn: str = _draw(landscape, row, wish).to_json()
        return drawn.encode()

    return cached_response(request, app_state, row, ("figure", *vars(wish).values()), make)


def _draw(landscape: Landscape, row: ExperimentRow, wish: FigureQuery) -> go.Figure:
    from valleyscope.landscape import figures  # plotly takes a second to load, which the start of a server must not

    colours = colours_of(row.spec["minima"])
    shared: dict[str, Any] = {"theme": wish.theme, "colours": colours}
    log: dict[str, Any] = {} if wish.log is None else {"log": wish.log}
    match wish.kind:
        case "contour" | "surface3d":
            plane = find_plane(landscape, row, wish.plane)
            if wish.split not in plane.splits:
                raise Problem(404, "unknown-split", f"plane {plane.name!r} was not evaluated on {wish.split!r}")
            if not recorded(plane.splits[wish.split][wish.value]):
                raise not_available(f"nothing of plane {plane.name!r} is computed", row)
            draw = figures.contour if wish.kind == "contour" else figures.surface3d
            return draw(plane, wish.split, wish.value, clip=wish.clip, **log, **shared)
        case "paper":
            plane = find_plane(landscape, row, wish.plane)
            if not plane.done.any():
                raise not_available(f"nothing of plane {plane.name!r} is computed", row)
            return figures.paper_figure(landscape, plane.name, clip=wish.clip, **log, **shared)
        case "profile":
            paths = figures.profile_paths(landscape)
            if not paths:
                raise not_available("no path is measured", row, of_two=True)
            return figures.profile(*paths, **log, **shared)
        case "training":
            return figures.training(_minima(landscape, row), wish.quantity, **log, **shared)
        case "sparsity":
            return figures.sparsity(_minima(landscape, row), **shared)


def _minima(landscape: Landscape, row: ExperimentRow) -> list[MinimumRecord]:
    if not landscape.minima:
        raise not_available("no minimum is trained", row)
    return list(landscape.minima.values())
