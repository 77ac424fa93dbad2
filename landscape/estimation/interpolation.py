"""Interpolation between the points of nested grids, by cubics through the four nearest lines along each axis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_FEWEST_LINES = 6
_ORDER = 4


def coarser(length: int, step: int) -> Indices:
    """The indices of every ``step``-th grid line and the last; all of them where too few would be left."""
    kept = np.unique(np.append(np.arange(0, length, step), length - 1)).astype(np.intp)
    return kept if len(kept) >= _FEWEST_LINES else np.arange(length, dtype=np.intp)


def line_stencils(lines: Floats, known: Indices) -> tuple[Indices, Floats]:
    """For every grid line the four known lines nearest to it, and their weights: exact for cubics."""
    places = lines[known]
    order = min(_ORDER, len(known))
    first = np.clip(np.searchsorted(places, lines) - order // 2, 0, len(known) - order)
    near = first[:, None] + np.arange(order)
    weights = np.ones(near.shape)
    for one in range(order):
        for other in range(order):
            if one != other:
                left, right = places[near[:, one]], places[near[:, other]]
                weights[:, one] *= (lines - right) / (left - right)
    return known[near], weights


def grid_stencils(x: Floats, y: Floats, columns: Indices, rows: Indices) -> tuple[Indices, Floats]:
    """For every point of a grid, row by row, the points of these rows and columns around it, and their weights."""
    down, down_weights = line_stencils(y, rows)
    across, across_weights = line_stencils(x, columns)
    points = down[:, None, :, None] * len(x) + across[None, :, None, :]
    weights = down_weights[:, None, :, None] * across_weights[None, :, None, :]
    count = len(x) * len(y)
    return points.reshape(count, -1), weights.reshape(count, -1)
