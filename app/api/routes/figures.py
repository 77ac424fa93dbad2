"""/api/experiments/{id}/figure: plotly figures of the results so far."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from valleyscope.app.api.cached_responses import cached_response, not_available
from valleyscope.app.api.dependencies import ExperimentId, State
from valleyscope.app.api.openapi import NOT_MODIFIED, problems
from valleyscope.app.api.routes.results import PlaneName, Split, Value, find_grid, find_plane
from valleyscope.app.storage.experiment_table import ExperimentRow
from valleyscope.landscape.analysis.fork_curves import fork_curves
from valleyscope.landscape.analysis.method_table import method_table
from valleyscope.landscape.analysis.minima_map import minima_map
from valleyscope.landscape.claim import claim_of
from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord, recorded

if TYPE_CHECKING:
    import plotly.graph_objects as go

router = APIRouter(tags=["results"])

_PDF = "application/pdf"
Kind = Literal["contour", "surface3d", "profile", "training", "sparsity", "paper", "pareto", "forks", "map"]
Quantity = Literal["loss", "accuracy", "sparsity", "zero_groups", "threshold", "angle", "learning_rate"]


@dataclass(frozen=True)
class FigureQuery:
    kind: Annotated[Kind, Query(description="type of figure")] = "contour"
    plane: PlaneName = None
    split: Split = "train"
    value: Value = "loss"
    log: Annotated[bool | None, Query(description="logarithmic scale; by default that of training only")] = None
    clip: Annotated[
        float | None, Query(ge=1e-30, lt=1e300, description="end of the colour scale, in nats or as a share")
    ] = None
    quantity: Annotated[Quantity, Query(description="for kind=training")] = "loss"
    by: Annotated[Literal["distance", "barrier"], Query(description="for kind=map")] = "distance"
    theme: Annotated[Literal["light", "dark"], Query()] = "light"


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
def figure(id: ExperimentId, request: Request, app_state: State, query: Annotated[FigureQuery, Depends()]) -> Response:
    """Get a plotly figure of the landscape, the training or the sparsity."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        drawn: str = _draw(landscape, row, query).to_json()
        return drawn.encode()

    return cached_response(request, app_state, row, ("figure", *astuple(query)), make)


@router.get(
    "/experiments/{id}/paper.pdf",
    response_class=Response,
    responses={
        200: {"description": "A PDF file", "content": {_PDF: {"schema": {"type": "string", "format": "binary"}}}},
        **NOT_MODIFIED,
        **problems(404),
    },
)
def paper_pdf(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Get the figure of the paper as PDF: the plane of the claim above, the paths below."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        from valleyscope.landscape.export.matplotlib_figures import paper_picture  # slow: loads matplotlib

        picture = paper_picture(landscape, "pdf")
        if picture is None:
            raise not_available("there is no plane with paths", row, of_two=True)
        return picture

    return cached_response(request, app_state, row, ("paper.pdf",), make, media_type=_PDF)


def _draw(landscape: Landscape, row: ExperimentRow, query: FigureQuery) -> go.Figure:
    from valleyscope.landscape import figures  # slow: loads plotly

    colours = colours_of(row.spec["minima"])
    shared: dict[str, Any] = {"theme": query.theme, "colours": colours}
    log: dict[str, Any] = {} if query.log is None else {"log": query.log}
    match query.kind:
        case "contour" | "surface3d":
            plane = find_plane(landscape, row, query.plane)
            if not recorded(find_grid(plane, query.split, query.value)):
                raise not_available(f"plane {plane.name!r} is not computed", row)
            draw = figures.contour if query.kind == "contour" else figures.surface3d
            claim = claim_of(landscape)
            return draw(plane, query.split, query.value, clip=query.clip, claim=claim, **log, **shared)
        case "paper":
            plane = find_plane(landscape, row, query.plane)
            if not plane.done.any():
                raise not_available(f"plane {plane.name!r} is not computed", row)
            return figures.paper_figure(landscape, plane.name, clip=query.clip, **log, **shared)
        case "profile":
            paths = figures.profile_paths(landscape)
            if not paths:
                raise not_available("there is no profile", row, of_two=True)
            return figures.profile(*paths, **log, **shared)
        case "training":
            return figures.training(_minima(landscape, row), query.quantity, **log, **shared)
        case "pareto":
            rows = method_table(landscape)
            if not rows:
                raise not_available("there is no comparison of methods", row)
            return figures.pareto(rows, theme=query.theme)
        case "forks":
            found = fork_curves(landscape)
            if found is None:
                raise not_available("there are no forks", row)
            return figures.forks(found, theme=query.theme)
        case "map":
            places = minima_map(landscape)
            if places is None:
                raise not_available("there is no line between every two of three or more minima", row)
            return figures.minima_map_figure(places, query.by, colours, query.theme)
        case "sparsity":
            return figures.sparsity(_minima(landscape, row), **shared)


def _minima(landscape: Landscape, row: ExperimentRow) -> list[MinimumRecord]:
    if not landscape.minima:
        raise not_available("there is no trained minimum", row)
    return list(landscape.minima.values())
