"""Grid lines of a plane: evenly spaced, around all named points, through the minima.

A grid on [-0.2, 1.2] with 21 points misses both minima, so its lowest values are too high. Here the minima are grid
points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALLEST_RESOLUTION = 3
LARGEST_RESOLUTION = 2001


def grid_axes(
    resolution: int | tuple[int, int],
    points: Iterable[tuple[float, float]],
    *,
    distance: float | None,
    margin: float = 0.2,
    half_height: float = 0.5,
) -> tuple[Floats, Floats]:
    """Grid lines (x, y) around the points with a margin, through (0, 0) and, if given, (distance, 0).

    ``margin`` is a share of the extent of each axis. The second axis reaches at least ``half_height`` of the distance
    (without one: of the width) to both sides, so three points almost in a line do not give a sliver.
    """
    columns, rows = checked_resolution(resolution)
    if not (math.isfinite(margin) and margin >= 0):
        raise ValueError(f"margin is {margin}; give a share of the extent of the axis, zero or more")
    table = np.array([(0.0, 0.0), *points], dtype=np.float64)
    if distance is not None:
        table = np.vstack([table, (distance, 0.0)])
    if not np.isfinite(table).all():
        raise ValueError("a named point has coordinates that are not finite")
    left, right = _with_margin(table[:, 0], margin)
    if right == left:
        raise ValueError("all named points coincide, so the plane has no default range: give one with range=")
    reach = half_height * (right - left if distance is None else distance)
    bottom, top = _with_margin(table[:, 1], margin)
    x = through_zero(left, right, columns) if distance is None else through_both(left, right, distance, columns)
    return x, through_zero(min(bottom, -reach), max(top, reach), rows)


def checked_resolution(resolution: int | tuple[int, int]) -> tuple[int, int]:
    """Columns and rows of a grid from one number or a pair, checked against the limits."""
    pair = tuple(resolution) if isinstance(resolution, tuple | list) else (resolution, resolution)
    if len(pair) != 2 or any(isinstance(number, bool) or not isinstance(number, Integral) for number in pair):
        raise ValueError(f"resolution is {resolution!r}; give one whole number or a pair (columns, rows)")
    for number in pair:
        if number < SMALLEST_RESOLUTION:
            raise ValueError(f"resolution is {resolution}; a grid needs {SMALLEST_RESOLUTION} or more points a side")
        if number > LARGEST_RESOLUTION:
            raise ValueError(f"resolution is {resolution}; a grid has at most {LARGEST_RESOLUTION} points a side")
    return int(pair[0]), int(pair[1])


def axes_over_range(
    resolution: int | tuple[int, int], limits: tuple[tuple[float, float], tuple[float, float]]
) -> tuple[Floats, Floats]:
    """Evenly spaced grid lines (x, y) over exactly these limits."""
    columns, rows = checked_resolution(resolution)
    for axis, (low, high) in zip("xy", limits, strict=True):
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"range of {axis} is ({low}, {high}); give two finite numbers, the smaller one first")
    (left, right), (bottom, top) = limits
    return np.linspace(left, right, columns), np.linspace(bottom, top, rows)


def through_zero(low: float, high: float, count: int) -> Floats:
    """The finest ``count`` even grid lines that include 0 and cover [low, high], low <= 0 <= high."""
    before = np.arange(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.fmax(np.where(low < 0, -low / before, 0.0), np.where(high > 0, high / (count - 1 - before), 0.0))
    best = int(np.argmin(step))
    return np.asarray((np.arange(count) - best) * step[best], dtype=np.float64)


def through_both(low: float, high: float, distance: float, count: int) -> Floats:
    """The finest ``count`` even grid lines that include 0 and ``distance`` and cover [low, high].

    With ``parts`` steps between the two, the step is distance / parts. If even one part is too fine to cover
    the range, the line nearest to ``distance`` is moved there: the minima stay grid points, the steps beside it differ.
    """
    below, above = -low / distance, high / distance
    parts = int((count - 1) / (below + above))
    while parts > 0 and _whole(below * parts) + _whole(above * parts) > count - 1:
        parts -= 1
    if parts == 0:
        lines = through_zero(low, high, count)
        zero = int(np.flatnonzero(lines == 0.0)[0])
        nearest = min(max(int(np.argmin(np.abs(lines - distance))), zero + 1), count - 1)
        lines[nearest] = distance
        return lines
    spare = count - 1 - _whole(below * parts) - _whole(above * parts)
    zero = _whole(below * parts) + spare // 2
    return np.asarray((np.arange(count) - zero) / parts * distance, dtype=np.float64)


def _with_margin(values: Floats, margin: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return low - margin * (high - low), high + margin * (high - low)


def _whole(steps: float) -> int:
    """Steps rounded up, ignoring rounding noise."""
    return math.ceil(steps - 1e-9)
