"""The record of a plane in a landscape: its grid and the coordinates of all named points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from valleyscope.landscape.geometry.curves import Curve
from valleyscope.landscape.geometry.planes import Plane
from valleyscope.landscape.plot_style import STYLE
from valleyscope.landscape.storage.records import TRAJECTORY, Floats, PlaneRecord


def plane_record(
    name: str,
    plane: Plane,
    points: Mapping[str, Tensor],
    curves: Mapping[str, Curve],
    *,
    splits: Sequence[str],
    resolution: int | tuple[int, int] = 41,
    margin: float = 0.2,
    defining: Sequence[str] = (),
    path_points: int = 61,
    trajectories: Mapping[str, Floats] | None = None,
    offsets: Mapping[str, Floats] | None = None,
    axes: Sequence[str] = (),
) -> PlaneRecord:
    """The record of a plane without values: axes, and all named points and curves projected on it.

    ``defining`` names the points that define the plane; its trajectory belongs to the first of them. ``trajectories``
    has the coordinates of the snapshots of further minima; those of minima far off the plane are left out. ``offsets``
    has the distances of the snapshots of minima from the plane. ``axes`` says where the axes lead, if that is known.
    """
    t = np.linspace(0.0, 1.0, path_points)
    paths = {key: plane.trace(curve, t) for key, curve in curves.items()}
    if plane.trajectory is not None and defining:
        paths[f"{TRAJECTORY}{defining[0]}"] = plane.trajectory
    x, y = plane.axes(resolution, margin=margin)
    distances = {key: plane.distance(vector) for key, vector in points.items()}
    farthest = STYLE["axes"]["far"] * float(max(np.ptp(x), np.ptp(y)))
    for key, places in (trajectories or {}).items():
        # The way to a minimum that is not drawn would lead nowhere.
        if distances.get(key, 0.0) <= farthest:
            paths.setdefault(f"{TRAJECTORY}{key}", places)
    return PlaneRecord.empty(
        name,
        plane.kind,
        x,
        y,
        tuple(splits),
        points={key: plane.coordinates(vector) for key, vector in points.items()},
        paths=paths,
        defining=tuple(defining),
        distances=distances,
        note=plane.note,
        explained=plane.explained,
        offsets={f"{TRAJECTORY}{key}": far for key, far in (offsets or {}).items() if f"{TRAJECTORY}{key}" in paths},
        axes=tuple(axes),
    )
