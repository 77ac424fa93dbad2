"""/api/experiments/{id}/...: minima, surfaces, profiles and the verdict, as far as they are computed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from valleyscope.app.api.cached_responses import cached_response, not_available
from valleyscope.app.api.curvature_schemas import CurvatureAnswer
from valleyscope.app.api.dependencies import ExperimentId, State
from valleyscope.app.api.family_schemas import Ensembles, Forks, Map
from valleyscope.app.api.openapi import NOT_MODIFIED, problems
from valleyscope.app.api.problems import Problem, invalid_parameter
from valleyscope.app.api.result_schemas import Matrix, Methods, Minima, PlaneValues, Profile, Surface, Verdict
from valleyscope.app.api.serializers import planes_of
from valleyscope.app.storage.experiment_table import ExperimentRow
from valleyscope.landscape.analysis.curvature_summary import curvature_summaries
from valleyscope.landscape.analysis.fork_curves import fork_curves
from valleyscope.landscape.analysis.method_table import method_table, remarks
from valleyscope.landscape.analysis.minima_map import minima_map
from valleyscope.landscape.analysis.pair_matrix import matrix_json
from valleyscope.landscape.analysis.pair_verdict import MissingLine, UnknownPair, pair_verdict
from valleyscope.landscape.analysis.published import published_beside
from valleyscope.landscape.claim import claim_of
from valleyscope.landscape.json_encoding import (
    encoded,
    minimum_json,
    packed,
    path_json,
    plane_data,
    plane_json,
    to_json,
    typed_array,
)
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Floats, PlaneRecord

router = APIRouter(tags=["results"])

_BINARY = "application/octet-stream"
PlaneName = Annotated[
    str | None, Query(max_length=64, description="name of a plane; the default is the first", examples=["valley"])
]
PathName = Annotated[str, Path(max_length=64, description="name of a plane", examples=["valley"])]
Split = Annotated[Literal["train", "test"], Query(description="data of the evaluation")]
Value = Annotated[Literal["loss", "error"], Query(description="loss in nats, or error as a share")]
SurfaceValue = Annotated[
    Literal["loss", "error", "loss_error", "error_error"],
    Query(description="loss in nats, error as a share, or the standard error of either"),
]


@router.get("/experiments/{id}/minima", response_model=Minima, responses={**NOT_MODIFIED, **problems(404)})
def minima(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Read the trained minima: metrics of each epoch and sparsity of each layer."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        found = {name: minimum_json(minimum) for name, minimum in landscape.minima.items()}
        return encoded({"experiment": id, "minima": found})

    return cached_response(request, app_state, row, ("minima",), make)


@router.get(
    "/experiments/{id}/surface",
    response_model=Surface,
    responses={
        200: {
            "content": {_BINARY: {"schema": {"type": "string", "format": "binary"}}},
            "description": "JSON with base64 arrays; or little-endian bytes: numbers of rows and columns as uint32, x, "
            "y and the values row by row as float64, and one byte per point that is 1 if it is computed",
        },
        **NOT_MODIFIED,
        **problems(404, 406),
    },
)
def surface(
    id: ExperimentId,
    request: Request,
    app_state: State,
    plane: PlaneName = None,
    split: Split = "train",
    value: SurfaceValue = "loss",
) -> Response:
    """Read the computed values on a plane; a row has one value of y. Standard errors of exact values are 0.

    Send `Accept: application/octet-stream` to get raw bytes.
    """
    row = app_state.service.get(id)
    binary = _wants_binary(request)

    def make(landscape: Landscape) -> bytes:
        record = find_plane(landscape, row, plane)
        values = find_grid(record, split, value)
        if binary:
            return _surface_bytes(record, values)
        about = {"experiment": id, "split": split, "value": value, "level": _level(landscape, record, split, value)}
        return encoded({**about, **plane_json(record), "z": typed_array(values)})

    media_type = _BINARY if binary else "application/json"
    return cached_response(request, app_state, row, ("surface", plane, split, value), make, media_type=media_type)


@router.get("/experiments/{id}/planes/{name}", response_model=PlaneValues, responses={**NOT_MODIFIED, **problems(404)})
def plane(id: ExperimentId, name: PathName, request: Request, app_state: State) -> Response:
    """Read a plane with all values that were recorded on it: loss and error of every split, and standard errors."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        return encoded({"experiment": id, **plane_data(find_plane(landscape, row, name))})

    return cached_response(request, app_state, row, ("plane", name), make)


@router.get("/experiments/{id}/profile", response_model=Profile, responses={**NOT_MODIFIED, **problems(404)})
def profile(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Read loss and error along the fitted curves and along the straight lines between minima."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        return encoded(
            {
                "experiment": id,
                "curves": {name: path_json(path) for name, path in landscape.curves.items()},
                "lines": {name: path_json(path) for name, path in landscape.lines.items()},
                "aligned": {name: path_json(path) for name, path in landscape.aligned.items()},
            }
        )

    return cached_response(request, app_state, row, ("profile",), make)


@router.get("/experiments/{id}/methods", response_model=Methods, responses={**NOT_MODIFIED, **problems(404)})
def methods(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Read the table of a comparison of pruning methods, with the spread of each number over seeds."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        if not row.spec.get("methods"):
            raise Problem(404, "none", "the spec compares no methods: submit one with methods and sparsities")
        rows = method_table(landscape)
        found = {"rows": [entry.to_json() for entry in rows], "remarks": remarks(rows)}
        return encoded({"experiment": id, **found, "published": published_beside(row.spec)})

    return cached_response(request, app_state, row, ("methods",), make)


@router.get("/experiments/{id}/forks", response_model=Forks, responses={**NOT_MODIFIED, **problems(404)})
def forks(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Read barrier and rise between a run and its forks, over the epoch of the fork, for every seed."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        found = fork_curves(landscape)
        if found is None:
            raise not_available("there are no forks", row)
        return encoded(to_json({"experiment": id, **found.to_json()}))

    return cached_response(request, app_state, row, ("forks",), make)


@router.get("/experiments/{id}/ensembles", response_model=Ensembles, responses={**NOT_MODIFIED, **problems(404)})
def ensembles(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Read loss and error of sets of minima: the members, the mean of their weights, and of their predictions."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        found = [record.to_json() for record in landscape.ensembles.values()]
        return encoded(to_json({"experiment": id, "items": found}))

    return cached_response(request, app_state, row, ("ensembles",), make)


@router.get("/experiments/{id}/map", response_model=Map, responses={**NOT_MODIFIED, **problems(404)})
def map_of_minima(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Read a map of the minima by distance and by barrier, and their order by clusters.

    It needs the line between every two minima.
    """
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        found = minima_map(landscape)
        if found is None:
            raise not_available("there is no line between every two of three or more minima", row)
        return encoded(to_json({"experiment": id, **found.to_json()}))

    return cached_response(request, app_state, row, ("map",), make)


@router.get("/experiments/{id}/matrix", response_model=Matrix, responses={**NOT_MODIFIED, **problems(404)})
def matrix(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Read barrier and rise of the straight line between every two minima, with their intervals.

    Rows and columns are in the order of `minima`. Null: the diagonal, a line that is not measured yet, and a bound of
    a line without an interval.
    """
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        if not landscape.lines:
            raise not_available("there is no line between two minima", row, of_two=True)
        return encoded(to_json({"experiment": id, **matrix_json(landscape)}))

    return cached_response(request, app_state, row, ("matrix",), make)


@router.get("/experiments/{id}/curvature", response_model=CurvatureAnswer, responses={**NOT_MODIFIED, **problems(404)})
def curvature(id: ExperimentId, request: Request, app_state: State) -> Response:
    """Read eigenvalues, trace and spectral density at the minima, direction factors, and the theorem's predictions."""
    row = app_state.service.get(id)

    def make(landscape: Landscape) -> bytes:
        if not landscape.curvature and row.spec.get("curvature") is None:
            raise Problem(404, "none", "the spec asks for no curvature: submit one with curvature, such as {top: 20}")
        if not landscape.curvature:
            raise not_available("there is no curvature", row)
        return encoded(to_json({"experiment": id, "minima": curvature_summaries(landscape)}))

    return cached_response(request, app_state, row, ("curvature",), make)


@router.get("/experiments/{id}/verdict", response_model=Verdict, responses={**NOT_MODIFIED, **problems(404)})
def verdict(
    id: ExperimentId,
    request: Request,
    app_state: State,
    between: Annotated[
        str | None,
        Query(
            max_length=200,
            description="judge these two minima instead of the experiment's, by what it measured",
            examples=["sgd,control"],
        ),
    ] = None,
) -> Response:
    """Read the verdict: level valley; one basin, sloping; joined by a curve only; separate; or undecided."""
    row = app_state.service.get(id)
    pair = None if between is None else _pair(between, list(row.spec["minima"]))

    def make(landscape: Landscape) -> bytes:
        if pair is not None:
            try:
                return encoded(to_json(pair_verdict(landscape, *pair)))
            except (MissingLine, UnknownPair):  # the names are right: a minimum or the line is not there yet
                raise not_available(f"there is no line from {pair[0]} to {pair[1]}", row) from None
        if landscape.verdict is None:
            raise not_available("there is no verdict", row, of_two=True)
        return encoded(to_json(landscape.verdict))

    return cached_response(request, app_state, row, ("verdict", pair), make)


def _pair(given: str, minima: list[str]) -> tuple[str, str]:
    """Two different minima from text such as "sgd,control"; raises a problem that names the field."""
    names = given.split(",")
    known = f"use two of {', '.join(minima)}, as {','.join((*minima, 'a', 'b')[:2])}"
    unknown = next((name for name in names if name not in minima), None)
    if len(names) != 2:
        wrong = f"{given!r} does not name two minima: {known}"
    elif unknown is not None:
        wrong = f"{unknown!r} is not a minimum of this experiment: {known}"
    elif names[0] == names[1]:
        wrong = f"{given!r} names one minimum twice: {known}"
    else:
        return names[0], names[1]
    raise invalid_parameter("query", "between", wrong, given)


def find_plane(landscape: Landscape, row: ExperimentRow, name: str | None) -> PlaneRecord:
    """A plane by name, or the first of the spec; raises a problem if it is unknown or not computed."""
    planned = planes_of(row)
    if name is None and planned:
        name = planned[0]
    if name not in planned:
        known = f"use one of {', '.join(planned)}" if planned else "the experiment has none"
        raise Problem(404, "unknown-plane", f"plane {name!r} does not exist: {known}")
    if name not in landscape.planes:
        raise not_available(f"plane {name!r} is not computed", row)
    return landscape.planes[name]


def find_grid(plane: PlaneRecord, split: str, value: str) -> Floats:
    if split not in plane.splits:
        has = ", ".join(plane.splits)
        raise Problem(404, "unknown-split", f"plane {plane.name!r} was not evaluated on {split!r}: use one of {has}")
    return plane.splits[split][value]


def _level(landscape: Landscape, plane: PlaneRecord, split: str, value: str) -> dict[str, Any] | None:
    claim = claim_of(landscape)
    level = None if claim is None else claim.level(plane, split, value)
    return None if level is None else {**asdict(level), "value": level.value}


def _surface_bytes(plane: PlaneRecord, values: Floats) -> bytes:
    shape = np.array(plane.shape, dtype="<u4").tobytes()
    return b"".join((shape, *(packed(array) for array in (plane.x, plane.y, values, plane.done))))


def _wants_binary(request: Request) -> bool:
    """Whether Accept names raw bytes; JSON is the default. Quality values are ignored."""
    accepted = request.headers.get("accept", "*/*").lower()
    if _BINARY in accepted:
        return True
    if any(form in accepted for form in ("application/json", "application/*", "*/*")):
        return False
    raise Problem(406, "no-such-form", f"a surface is sent as application/json or {_BINARY}")
