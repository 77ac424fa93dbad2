"""Paths read off a surface: other tools keep the surface around two networks, and not the line between them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from valleyscope.landscape.analysis.barriers import Barrier, Estimate, measured_barrier
from valleyscope.landscape.analysis.grid_sampling import sample, spread
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import (
    TRAJECTORY,
    Floats,
    Grid,
    PathRecord,
    PathValues,
    PlaneRecord,
    between,
    line_name,
)

_POINTS: Final = 61
_READ: Final = "read off the surface "
_ON_PLANE: Final = 1e-3
"""A point is on a plane up to this share of its longer side."""


def read_paths(landscape: Landscape) -> None:
    """Add the lines between minima on the same plane, and curves in it, where their values are not in a file.

    Values between grid points are interpolated; the ends are those of a measured curve where there is one.
    """
    for plane in landscape.planes.values():
        for start, end in combinations([name for name in landscape.minima if _is_on(plane, name)], 2):
            line = None if between(landscape.lines, start, end) else _line(plane, start, end)
            curve = between(landscape.curves, start, end)
            if line is not None:
                landscape.lines[line.name] = line if curve is None else _with_ends(line, curve)
            if curve is None and (drawn := _curve(plane, start, end)) is not None:
                landscape.curves[drawn.name] = drawn


def is_read(path: PathRecord) -> bool:
    """Whether the values of a path were read off a surface."""
    return path.note.startswith(_READ)


def estimate_with_bounds(landscape: Landscape, path: PathRecord, split: str, quantity: str = "loss") -> Barrier:
    """Barrier, rise and ends of a path read off a surface, between bounds.

    Interpolation errs about as much as the values change when every second line of the grid is left out.
    """
    plane = next((plane for plane in landscape.planes.values() if path.note.startswith(_note(plane))), None)
    if plane is None:
        raise ValueError(f"{path.name}: the surface that it was read off is missing")
    fine = path.splits[split][quantity]
    places = _places(plane, path)
    coarse = np.array(_read(_thinned(plane), places)[split][quantity])
    coarse[[0, -1]] = fine[[0, -1]]
    found, other = measured_barrier(fine), measured_barrier(np.where(np.isnan(coarse), fine, coarse))
    assert found.rise is not None
    assert found.ends is not None
    assert other.rise is not None
    rise, barrier = _between(found.rise, other.rise), _between(found, other)
    return Barrier(barrier.value, barrier.low, barrier.high, rise=rise, ends=Estimate(found.ends.value))


def _between(found: Estimate, other: Estimate) -> Estimate:
    if not np.isfinite(found.value - other.value):
        return Estimate(found.value)
    apart = abs(found.value - other.value)
    return Estimate(found.value, max(0.0, found.value - apart), found.value + apart)


def _is_on(plane: PlaneRecord, name: str) -> bool:
    if name not in plane.points:
        return False
    return plane.distances.get(name, 0.0) <= _ON_PLANE * max(float(np.ptp(plane.x)), float(np.ptp(plane.y)))


def _line(plane: PlaneRecord, start: str, end: str) -> PathRecord | None:
    t = np.linspace(0.0, 1.0, _POINTS)
    first, last = (np.array(plane.points[name]) for name in (start, end))
    places = (1 - t)[:, None] * first + t[:, None] * last
    return _record(plane, line_name(start, end), "line", (start, end), t, places)


def _curve(plane: PlaneRecord, start: str, end: str) -> PathRecord | None:
    """The curve drawn on a plane, if it lies in it: one with a single bend that defines the plane."""
    drawn = {name: places for name, places in plane.paths.items() if not name.startswith(TRAJECTORY)}
    if len(drawn) != 1 or "bend" not in plane.defining or len(next(iter(drawn.values()))) < 3:
        return None
    [(name, places)] = drawn.items()
    ends = np.array([plane.points[start], plane.points[end]])
    if np.abs(places[[0, -1]] - ends).max() > _ON_PLANE * float(np.ptp(plane.x)):
        return None
    return _record(plane, name, "curve", (start, end), np.linspace(0.0, 1.0, len(places)), places)


def _record(
    plane: PlaneRecord, name: str, kind: str, ends: tuple[str, str], t: Floats, places: Floats
) -> PathRecord | None:
    splits = {split: values for split, values in _read(plane, places).items() if not np.isnan(values.loss).any()}
    if not splits:
        return None
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    arc = np.concatenate([[0.0], np.cumsum(steps)])
    return PathRecord(name, kind, *ends, t, arc, splits, _note(plane), loss_unit=plane.loss_unit)


def _note(plane: PlaneRecord) -> str:
    apart = max(float(np.diff(plane.x).max()), float(np.diff(plane.y).max()))
    return f"{_READ}{plane.name!r} by interpolation, whose grid points are {apart:.3g} apart"


def _read(plane: PlaneRecord, places: Floats) -> dict[str, PathValues]:
    return {
        split: PathValues(*(sample(plane.x, plane.y, grid[value], places) for value in ("loss", "error")))
        for split, grid in plane.splits.items()
    }


def _places(plane: PlaneRecord, path: PathRecord) -> Floats:
    if path.kind != "line":
        return plane.paths[path.name]
    first, last = (np.array(plane.points[name]) for name in (path.start, path.end))
    return np.asarray((1 - path.t)[:, None] * first + path.t[:, None] * last, dtype=np.float64)


def _thinned(plane: PlaneRecord) -> PlaneRecord:
    """The plane with every second line of its grid."""
    rows, columns = (spread(length, -(-length // 2)) for length in plane.shape)
    chosen = np.ix_(rows, columns)
    grids = {split: Grid(grid.loss[chosen], grid.error[chosen]) for split, grid in plane.splits.items()}
    return replace(plane, x=plane.x[columns], y=plane.y[rows], done=plane.done[chosen], splits=grids)


def _with_ends(line: PathRecord, curve: PathRecord) -> PathRecord:
    """The line with the values that were measured at its ends."""
    order = [0, -1] if curve.start == line.start else [-1, 0]
    for split, values in line.splits.items():
        if split in curve.splits:
            for quantity in ("loss", "error"):
                known = curve.splits[split][quantity][order]
                if not np.isnan(known).any():
                    values[quantity][[0, -1]] = known
    return line
