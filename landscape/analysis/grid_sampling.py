"""Values of a surface between its grid points, and what is known of a grid that is half computed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.geometry.tiles import COARSEST_INTERVALS
from valleyscope.landscape.storage.records import Floats, PlaneRecord

Indices = NDArray[np.intp]


def sample(x: Floats, y: Floats, values: Floats, places: Floats) -> Floats:
    """Bilinear interpolation at places (n, 2); NaN outside the grid and beside points that are not computed."""
    inside = (places[:, 0] >= x[0]) & (places[:, 0] <= x[-1]) & (places[:, 1] >= y[0]) & (places[:, 1] <= y[-1])
    column = np.clip(np.searchsorted(x, places[:, 0], side="right") - 1, 0, len(x) - 2)
    row = np.clip(np.searchsorted(y, places[:, 1], side="right") - 1, 0, len(y) - 2)
    right = np.clip((places[:, 0] - x[column]) / (x[column + 1] - x[column]), 0, 1)
    up = np.clip((places[:, 1] - y[row]) / (y[row + 1] - y[row]), 0, 1)
    corners = [
        ((1 - up) * (1 - right), values[row, column]),
        ((1 - up) * right, values[row, column + 1]),
        (up * (1 - right), values[row + 1, column]),
        (up * right, values[row + 1, column + 1]),
    ]
    total = np.zeros(len(places))
    for weight, value in corners:
        # A corner without weight must not spoil the sum: 0 times inf or NaN is NaN.
        total += np.multiply(weight, value, out=np.zeros(len(places)), where=weight > 0)
    return np.where(inside, total, np.nan)


def straight_lines(plane: PlaneRecord, points: int = 61) -> dict[tuple[str, str], Floats]:
    """The segments between the minima that span the plane, as places (n, 2)."""
    ends = [name for name in plane.defining if not is_bend(name) and name in plane.points]
    t = np.linspace(0, 1, points)[:, None]
    return {
        (start, end): (1 - t) * np.array(plane.points[start]) + t * np.array(plane.points[end])
        for start, end in combinations(ends, 2)
    }


def is_bend(name: str) -> bool:
    return name == "bend" or name.rpartition(".")[2].startswith("bend")


def spread(length: int, most: int) -> Indices:
    """Every so many-th index of an axis from end to end, about ``most`` of them.

    >>> spread(6, 3).tolist()
    [0, 2, 4, 5]
    """
    return np.unique([*range(0, length, -(-length // most)), length - 1])


def coarse_lattice(done: NDArray[np.bool_]) -> tuple[Indices, Indices] | None:
    """Rows and columns of a sub-grid that is computed everywhere and nowhere coarser than the first pass, or None.

    A surface is computed coarse to fine, so after the first pass every few rows and columns are known: enough for a
    whole picture in large cells. A row of such a lattice is known at both of its ends, and so is a column; of those
    that are, the ones with most gaps are dropped until none is left.
    """
    rows = np.flatnonzero(done[:, 0] & done[:, -1])
    columns = np.flatnonzero(done[0] & done[-1])
    while len(rows) > 1 and len(columns) > 1:
        gaps = ~done[np.ix_(rows, columns)]
        if not gaps.any():
            return (rows, columns) if _dense(rows, done.shape[0]) and _dense(columns, done.shape[1]) else None
        in_rows, in_columns = gaps.mean(axis=1), gaps.mean(axis=0)
        if in_rows.max() >= in_columns.max():
            rows = rows[in_rows < in_rows.max()]
        else:
            columns = columns[in_columns < in_columns.max()]
    return None


def _dense(indices: Indices, length: int) -> bool:
    """Whether the indices reach from end to end in steps no longer than those of the first pass."""
    longest = -(-(length - 1) // COARSEST_INTERVALS)
    return bool(indices[0] == 0 and indices[-1] == length - 1 and np.diff(indices).max() <= longest)
