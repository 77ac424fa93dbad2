"""Tiles of a surface, from coarse to fine, so that a whole picture is there first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COARSEST_INTERVALS = 8
"""The first level has at most this many intervals along each axis: a picture of 9 x 9 points."""


@dataclass(frozen=True, eq=False)
class Tile:
    """Some points of a grid: point i lies in row ``rows[i]`` and column ``columns[i]``; level 0 is the coarsest."""

    level: int
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.rows)


def tiles(rows: int, columns: int, size: int) -> list[Tile]:
    """All points of a grid, each in exactly one tile of at most ``size`` points, coarse levels first.

    Level 0 has 9 x 9 points spread evenly from edge to edge; every further level halves the spacing. The points of a
    level are divided evenly between its tiles, row by row.

    >>> [len(tile) for tile in tiles(41, 41, 81)][:3]
    [81, 70, 69]
    """
    for name, value in (("rows", rows), ("columns", columns), ("size", size)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be 1 or more")
    seen = np.zeros((rows, columns), dtype=bool)
    found: list[Tile] = []
    level, intervals = 0, COARSEST_INTERVALS
    while not seen.all():
        picture = np.zeros_like(seen)
        picture[np.ix_(_even_indices(rows, intervals), _even_indices(columns, intervals))] = True
        places = np.argwhere(picture & ~seen)
        found += [Tile(level, part[:, 0], part[:, 1]) for part in np.array_split(places, -(-len(places) // size))]
        seen |= picture
        level, intervals = level + 1, 2 * intervals
    return found


def _even_indices(length: int, intervals: int) -> NDArray[np.intp]:
    """Indices that divide [0, length - 1] into at most this many even intervals; nested when intervals double."""
    # Integer arithmetic: halves round the same way on every machine.
    rounded = (2 * np.arange(intervals + 1) * (length - 1) + intervals) // (2 * intervals)
    return np.unique(rounded).astype(np.intp)
