"""The points of a grid by level: a coarse grid first, then the points between, whose values are interpolated first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.estimation.interpolation import coarser, grid_stencils
from valleyscope.landscape.geometry.tiles import COARSEST_INTERVALS, tiles

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

_STEPS = (4, 2)


@dataclass(frozen=True, eq=False)
class Stencils:
    """How all points are interpolated from a coarser grid: the points used, and their weights, (points, 16)."""

    points: Indices
    weights: Floats

    def touched_by(self, some: Mask) -> Mask:
        """The points whose interpolation uses any of these."""
        found: Mask = (some[self.points] & (self.weights != 0)).any(axis=1)
        return found


@dataclass(frozen=True, eq=False)
class GridLevels:
    """Points are numbered row by row. The grid of level j has all points of ``level`` up to j."""

    shape: tuple[int, int]
    level: Indices
    stencils: tuple[Stencils, ...]
    """One for each level but the last, which has all points."""

    @property
    def last(self) -> int:
        return len(self.stencils)


def grid_levels(x: Floats, y: Floats) -> GridLevels:
    """The levels of a grid: every fourth line, every second, all; fewer where the grid is small."""
    level = np.full((len(y), len(x)), -1, dtype=np.intp)
    stencils: list[Stencils] = []
    smallest = 0
    for step in _STEPS:
        rows, columns = coarser(len(y), step), coarser(len(x), step)
        if not smallest < len(rows) * len(columns) < level.size:
            continue
        smallest = len(rows) * len(columns)
        inside = np.zeros(level.shape, dtype=bool)
        inside[np.ix_(rows, columns)] = True
        level[inside & (level < 0)] = len(stencils)
        stencils.append(Stencils(*grid_stencils(x, y, columns, rows)))
    level[level < 0] = len(stencils)
    return GridLevels((len(y), len(x)), level.ravel(), tuple(stencils))


def first_picture(rows: int, columns: int) -> Indices:
    """The points of the first whole picture: nine lines along each axis, from edge to edge."""
    coarsest = tiles(rows, columns, (COARSEST_INTERVALS + 1) ** 2)[0]
    return np.asarray(coarsest.rows * columns + coarsest.columns, dtype=np.intp)
