"""Planes around a minimum along measured directions: eigenvectors of the Hessian, and the flat direction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from valleyscope.app.experiments.curvature_files import curvature_files
from valleyscope.app.experiments.curvature_spec import Direction
from valleyscope.app.experiments.plan import Kind
from valleyscope.app.experiments.result_codec import decode
from valleyscope.app.experiments.task_results import MeasuredCurvature
from valleyscope.landscape.geometry.orthonormal import normalised, orthogonal_part
from valleyscope.landscape.geometry.planes import Plane

FLAT = "flat"
"""The direction -Pi(E_G(w)) in a file of vectors; eigenvectors have their number."""
_ROOM = 1.15
_RISE = 2.0


def measured_plane(
    work: Path, name: str, origin: Tensor, directions: Sequence[Direction], others: Mapping[str, Tensor]
) -> tuple[Plane, tuple[str, str]]:
    """The plane around a minimum, and what its axes are called; it is wide enough for the other minima.

    Without others it reaches to where a loss of that curvature has risen by two nats. An eigenvector points to the side
    of the first of the others: its sign is arbitrary.
    """
    vectors = _vectors(work, name)
    values = _eigenvalues(work, name)
    axes: list[Tensor] = []
    labels: list[str] = []
    steepest = 0.0
    for direction in directions:
        number = 1 if direction == "sharpest" else direction
        axis = vectors[FLAT if number == "flattest" else str(number)].double()
        axis = normalised(orthogonal_part(axis, axes))
        if isinstance(number, int):
            steepest = max(steepest, abs(values[number - 1]))
            towards = next(iter(others.values()), None)
            if towards is not None and float(axis @ (towards - origin).double()) < 0:
                axis = -axis
        labels.append(_label(number, values))
        axes.append(axis)
    plane = Plane(origin, axes[0], axes[1], {name: (0.0, 0.0)}, "around", _note(name, labels))
    reach = math.sqrt(2 * _RISE / steepest) if steepest > 0 else 1.0
    for place in plane.project(list(others.values())) if others else ():
        reach = max(reach, _ROOM * float(abs(place).max()))
    return Plane(origin, axes[0], axes[1], plane.points, "around", plane.note, scale=(reach, reach)), (
        labels[0],
        labels[1],
    )


def _label(number: int | str, values: Sequence[float]) -> str:
    if isinstance(number, str):
        return "flat subspace, all groups shrink"
    return f"eigenvector {number}, eigenvalue {values[number - 1]:.3g}"


def _note(name: str, labels: Sequence[str]) -> str:
    return f"measured directions of the Hessian at {name!r}: {labels[0]} (across) and {labels[1]} (up)"


def _vectors(work: Path, minimum: str) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for kind in (Kind.CURVATURE, Kind.DIRECTIONS):
        path = work / curvature_files(kind, minimum)[1]
        if path.is_file():
            found |= load_file(path)
    return found


def _eigenvalues(work: Path, minimum: str) -> list[float]:
    found = decode((work / curvature_files(Kind.CURVATURE, minimum)[0]).read_bytes())
    assert isinstance(found, MeasuredCurvature)
    return [float(value) for value in found.record.eigenvalues]
