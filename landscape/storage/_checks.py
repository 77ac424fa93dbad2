"""Checks of a landscape, before it is written and after it is read.

Every message starts with the member of the HDF5 file, so it fits wrong arrays from a caller and damaged files alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from valleyscope.landscape.storage.curvature_record import check_curvature
from valleyscope.landscape.storage.ensemble_record import check_ensembles
from valleyscope.landscape.storage.fork_record import check_forks
from valleyscope.landscape.storage.map_record import check_map
from valleyscope.landscape.storage.matrix_record import check_matrix
from valleyscope.landscape.storage.records import (
    PATH_KINDS,
    PLANE_KINDS,
    TRAJECTORY,
    Floats,
    Grid,
    MinimumRecord,
    PathRecord,
    PathValues,
    PlaneRecord,
    checked_name,
    coinciding_lines,
    line_name,
    recorded,
)

if TYPE_CHECKING:
    from valleyscope.landscape.storage.landscape_file import Landscape


_RESERVED = frozenset({"x", "y", "done", "points", "paths", "t", "arc", "fit"})


def check_landscape(landscape: Landscape) -> None:
    """Raise a ValueError that names the first invalid member."""
    for member in ("spec", "provenance"):
        if not isinstance(getattr(landscape, member), dict):
            raise ValueError(f"{member}: is not a dict")
    if "fingerprint" not in landscape.provenance:
        raise ValueError("provenance: has no fingerprint of the data; give one, or None if it is unknown")
    if landscape.verdict is not None and not isinstance(landscape.verdict, dict):
        raise ValueError("verdict: is not a dict or None")
    for key, minimum in _named("minima", landscape.minima):
        _check_minimum(f"minima/{key}", minimum)
    for key, plane in _named("planes", landscape.planes):
        _check_plane(f"planes/{key}", plane)
    kinds = (("curves", landscape.curves), ("lines", landscape.lines), ("aligned", landscape.aligned))
    for group, paths in kinds:
        for key, path in _named(group, paths):
            _check_path(f"{group}/{key}", path)
    if landscape.matrix is not None:
        check_matrix(landscape.matrix)
    check_ensembles(landscape.ensembles)
    if landscape.forks is not None:
        check_forks(landscape.forks)
    if landscape.minima_map is not None:
        check_map(landscape.minima_map)
    check_curvature(landscape.curvature)


def check_line_names(landscape: Landscape) -> None:
    """Raise a ValueError if two straight lines between the minima would have one key: one would replace the other.

    Only before a file is written. Files of earlier versions that have such minima still open; each line says where it
    starts and ends.
    """
    if (line := coinciding_lines(landscape.minima)) is not None:
        names = ", ".join(landscape.minima)
        raise ValueError(f"minima: two lines between {names} would have the name {line!r}; rename a minimum")


def _named(group: str, members: Mapping[str, Any]) -> list[tuple[str, Any]]:
    for key, record in members.items():
        if group != "lines":
            checked_name(key, f"{group}: a member")
        elif key != (expected := line_name(record.start, record.end)):
            raise ValueError(f"{group}/{key}: goes from {record.start!r} to {record.end!r}; use the key {expected!r}")
        if record.name != key:
            raise ValueError(f"{group}/{key}: has the name {record.name!r}; key and name must be equal")
    return list(members.items())


def _check_minimum(member: str, minimum: MinimumRecord) -> None:
    lengths = {name: len(_floats(f"{member}/epochs/{name}", values, 1)) for name, values in minimum.epochs.items()}
    for name in minimum.epochs:
        checked_name(name, f"{member}/epochs: a column")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{member}/epochs: columns differ in length: {lengths}")
    for layer in minimum.layers:
        for zero, total in ((layer.zero_groups, layer.groups), (layer.zero_parameters, layer.parameters)):
            if not 0 <= zero <= total:
                raise ValueError(f"{member}/layers: {layer.name} has {zero} zeros of {total}")


def _check_plane(member: str, plane: PlaneRecord) -> None:
    if plane.kind not in PLANE_KINDS:
        raise ValueError(f"{member}: kind is {plane.kind!r}; use one of {', '.join(PLANE_KINDS)}")
    for axis in ("x", "y"):
        values = _finite(f"{member}/{axis}", _floats(f"{member}/{axis}", getattr(plane, axis), 1))
        if len(values) < 2 or not (np.diff(values) > 0).all():
            raise ValueError(f"{member}/{axis}: a grid needs at least two coordinates that increase")
    if plane.done.dtype != np.bool_ or plane.done.shape != plane.shape:
        raise ValueError(
            f"{member}/done: is {plane.done.dtype} of shape {plane.done.shape}, not a mask of the grid's {plane.shape}"
        )
    if len(plane.axes) not in (0, 2):
        raise ValueError(f"{member}: axes has {len(plane.axes)} texts; give one for x and one for y, or none")
    if not plane.splits:
        raise ValueError(f"{member}: has no split; give train, test or both")
    for split, grid in plane.splits.items():
        check_split(member, split)
        _check_grid(f"{member}/{split}", plane, grid)
    for point, place in plane.points.items():
        checked_name(point, f"{member}/points: a point")
        _finite(f"{member}/points/{point}", _floats(f"{member}/points/{point}", np.asarray(place, float), 1, (2,)))
    for path, places in plane.paths.items():
        checked_name(path.removeprefix(TRAJECTORY), f"{member}/paths: a path")
        if _floats(f"{member}/paths/{path}", places, 2).shape[1] != 2:
            raise ValueError(f"{member}/paths/{path}: has shape {places.shape}, not (points, 2)")
        _finite(f"{member}/paths/{path}", places)
    for path, distances in plane.offsets.items():
        if path not in plane.paths or _floats(f"{member}/offsets/{path}", distances, 1).shape != (
            len(plane.paths[path]),
        ):
            raise ValueError(f"{member}/offsets/{path}: has no value for each point of a path of this name")
        if not (_finite(f"{member}/offsets/{path}", distances) >= 0).all():
            raise ValueError(f"{member}/offsets/{path}: has a distance below 0")
    if plane.explained is not None and not all(0 <= share <= 1 for share in plane.explained):
        raise ValueError(f"{member}: explained is {plane.explained}; shares lie in [0, 1]")
    for name in (*plane.defining, *plane.distances):
        if name not in plane.points:
            raise ValueError(f"{member}/points: {name} defines the plane or has a distance, but no coordinates")
    for name, distance in plane.distances.items():
        if not (np.isfinite(distance) and distance >= 0):
            raise ValueError(
                f"{member}/points/{name}: distance from the plane is {distance}; it must be finite, 0 or more"
            )


def check_split(member: str, split: str) -> None:
    """Raise a ValueError if this name is invalid for a split."""
    if checked_name(split, f"{member}: a split") in _RESERVED:
        raise ValueError(f"{member}: a split has the reserved name {split!r}; call it train or test")


def _check_grid(member: str, plane: PlaneRecord, grid: Grid) -> None:
    for quantity in ("loss", "error"):
        values = _floats(f"{member}/{quantity}", grid[quantity], 2, plane.shape)
        missing = np.isnan(values)
        # Of an estimated plane one split may have values before the other.
        wrong = ~missing & ~plane.done if plane.estimate else missing == plane.done
        if recorded(values) and wrong.any():
            row, column = np.argwhere(wrong)[0]
            state = "is NaN and marked as done" if missing[row, column] else "has a value and is not marked as done"
            raise ValueError(f"{member}/{quantity}: the point in row {row}, column {column} {state}")
        _check_range(f"{member}/{quantity}", values, quantity, plane.loss_unit)
    if grid.is_estimated:
        for quantity in ("loss_error", "error_error"):
            errors = _floats(f"{member}/{quantity}", grid[quantity], 2, plane.shape)
            if (errors[~np.isnan(errors)] < 0).any():
                raise ValueError(f"{member}/{quantity}: has a negative value; a standard error is zero or more")
    if plane.done.any() and not plane.estimate and not (recorded(grid.loss) or recorded(grid.error)):
        raise ValueError(f"{member}: is NaN everywhere, but points are marked as done")


def _check_path(member: str, path: PathRecord) -> None:
    if path.kind not in PATH_KINDS:
        raise ValueError(f"{member}: kind is {path.kind!r}; use one of {', '.join(PATH_KINDS)}")
    for end in (path.start, path.end):
        checked_name(end, f"{member}: an end")
    t = _finite(f"{member}/t", _floats(f"{member}/t", path.t, 1))
    arc = _finite(f"{member}/arc", _floats(f"{member}/arc", path.arc, 1, t.shape))
    if len(t) < 2 or not (np.diff(t) > 0).all() or (np.diff(arc) < 0).any():
        raise ValueError(f"{member}: needs two or more increasing values of t, and an arc that does not decrease")
    if not path.splits:
        raise ValueError(f"{member}: has no split; give train, test or both")
    lengths = {name: len(_floats(f"{member}/fit/{name}", values, 1)) for name, values in path.fit.items()}
    for name in path.fit:
        checked_name(name, f"{member}/fit: a column")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{member}/fit: columns differ in length: {lengths}")
    for split, values in path.splits.items():
        check_split(member, split)
        _check_path_values(f"{member}/{split}", values, t, path.loss_unit)


def _check_path_values(member: str, values: PathValues, t: Floats, loss_unit: str) -> None:
    for quantity in ("loss", "error"):
        numbers = _floats(f"{member}/{quantity}", values[quantity], 1, t.shape)
        if recorded(numbers) and np.isnan(numbers).any():
            raise ValueError(f"{member}/{quantity}: is NaN at t = {t[np.isnan(numbers)][0]:g}")
        _check_range(f"{member}/{quantity}", numbers, quantity, loss_unit)


def _check_range(member: str, values: Floats, quantity: str, loss_unit: str) -> None:
    """An entropy is not negative; a loss with a unit of its own, such as a log-likelihood, may be."""
    if quantity == "loss" and loss_unit != "nats":
        return
    with np.errstate(invalid="ignore"):
        wrong = values < 0 if quantity == "loss" else (values < 0) | (values > 1)
    if wrong.any():
        law = "a loss is zero or more" if quantity == "loss" else "an error is a fraction from 0 to 1"
        raise ValueError(f"{member}: has the value {values[wrong][0]:g}; {law}")


def _floats(member: str, values: Any, dimensions: int, shape: tuple[int, ...] | None = None) -> Floats:
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        found = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise ValueError(f"{member}: is {found}, not an array of float64")
    if values.ndim != dimensions or (shape is not None and values.shape != shape):
        expected = shape if shape is not None else f"{dimensions} dimension{'s' * (dimensions > 1)}"
        raise ValueError(f"{member}: has shape {values.shape}, not {expected}")
    return values


def _finite(member: str, values: Floats) -> Floats:
    if not np.isfinite(values).all():
        raise ValueError(f"{member}: has a value that is not finite")
    return values
