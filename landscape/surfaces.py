"""Surfaces: values on the grid of a plane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from landscape.evaluation import Evaluator, Values
from landscape.planes import Plane
from landscape.tiles import Tile


def evaluate_tile(
    evaluator: Evaluator,
    plane: Plane,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    tile: Tile,
    *,
    cancelled: Callable[[], bool] | None = None,
) -> dict[str, Values]:
    """Values at the points of a tile."""
    places = np.stack([np.ones(len(tile.rows)), x[tile.columns], y[tile.rows]], axis=1)
    return evaluator.at(plane.basis, places, cancelled=cancelled)
