"""Surfaces: loss and error on the grid of a plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from valleyscope.landscape.analysis.estimated_surface import EstimatedSurface, checked_accuracy, estimate_surface
from valleyscope.landscape.cancellation import CancelCheck
from valleyscope.landscape.drawing import result_figures
from valleyscope.landscape.evaluation.accumulators import Values
from valleyscope.landscape.evaluation.evaluator import Basis, BatchNorm, Evaluator, Progress, evaluator_for
from valleyscope.landscape.evaluation.objectives import ErrorRate, Loss
from valleyscope.landscape.evaluation.splits import Data
from valleyscope.landscape.geometry.grid_axes import SMALLEST_RESOLUTION
from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.planes import Coordinates, Plane
from valleyscope.landscape.geometry.tiles import Tile, tiles
from valleyscope.landscape.storage.records import Grid

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Floats = NDArray[np.float64]

LARGEST_RESOLUTION = 401
"""Default limit of grid points along an axis: 160 801 points in all."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Values on a grid: ``surface["train"].loss`` and ``.error`` have shape (len(y), len(x)), a row for each y."""

    x: Floats
    y: Floats
    splits: Mapping[str, Grid]
    plane: Plane | None = None
    unit: str = "nats"
    evaluated: float = 1.0
    """The share of all pairs of a sample and a point that was computed; 1 where the surface is exact."""
    note: str = ""
    """Of an estimated surface: what was computed exactly all the same, and why."""

    def __repr__(self) -> str:
        return f"Surface({len(self.x)} by {len(self.y)} points, splits {', '.join(self.splits)})"

    def figure(self, split: str | None = None, value: Literal["loss", "error"] = "loss", **options: Any) -> Figure:
        """A contour of one split as a plotly figure; ``options`` such as ``log`` and ``theme`` are those of contour."""
        figure: Figure = result_figures().surface_figure(self, split, value, **options)
        return figure

    def __getitem__(self, split: str) -> Grid:
        if split not in self.splits:
            raise KeyError(f"the surface has no split {split!r}; it has {', '.join(map(repr, self.splits))}")
        return self.splits[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)


def surface(
    model: nn.Module,
    plane: Plane,
    data: Data | None = None,
    resolution: int | tuple[int, int] = 41,
    *,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    range: tuple[Coordinates, Coordinates] | None = None,
    margin: float = 0.2,
    splits: Sequence[str] | None = None,
    loss: Loss = None,
    error: ErrorRate = None,
    parameters: Parameters = None,
    batch_norm: BatchNorm = "population",
    memory_limit: int | None = None,
    evaluator: Evaluator | None = None,
    tile_size: int | None = None,
    largest_resolution: int = LARGEST_RESOLUTION,
    accuracy: float | None = None,
    seed: int = 0,
    on_round: Callable[[Surface], object] | None = None,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> Surface:
    """Mean loss and error rate at every point of a plane's grid, over all samples of every split.

    The grid lines are those of ``plane.axes(resolution, margin=..., range=...)``, or ``x`` and ``y`` where given.
    ``data`` maps splits to (x, y); or give an ``evaluator`` that has the data. ``loss``, ``error``, ``parameters`` and
    ``memory_limit`` are those of ``Evaluator``. Values do not depend on ``tile_size``,
    the number of points that are computed together (default: all).

    With ``accuracy``, such as 0.01, the surface is estimated from a part of all pairs of a sample and a point, until
    the relative standard error of the loss is at most that, on average (the square root of the mean square) over the
    points; losses below a thousandth of their range are compared with that. ``loss_error`` and ``error_error`` of a
    split are the standard errors of every point, ``evaluated`` the share of pairs computed. The samples are drawn with
    ``seed``; ``on_round`` gets the surface after each round, from a first coarse picture on. Fewer than 500 samples,
    streamed data and running BatchNorm statistics are computed exactly; ``note`` says so.
    """
    if accuracy is not None:
        checked_accuracy(accuracy)
    columns, rows = _axes(plane, resolution, x, y, range, margin, largest_resolution)
    options = {"loss": loss, "error": error, "parameters": parameters, "memory_limit": memory_limit}
    evaluator = evaluator_for(model, data, evaluator, batch_norm, **options)
    names = list(evaluator.splits if splits is None else splits)
    if accuracy is not None:
        return _estimated(evaluator, plane, columns, rows, names, accuracy, seed, on_round, progress, cancelled)
    shape = (len(rows), len(columns))
    grids = {name: Grid(np.full(shape, np.nan), np.full(shape, np.nan)) for name in names}
    points = len(rows) * len(columns)
    basis, done = plane.vectors, 0
    for tile in tiles(*shape, tile_size or points):
        share = None if progress is None else partial(_report_tile, progress, done, len(tile), points)
        found = evaluate_tile(evaluator, basis, columns, rows, tile, splits=names, progress=share, cancelled=cancelled)
        for name, values in found.items():
            grids[name].loss[tile.rows, tile.columns] = values.loss
            grids[name].error[tile.rows, tile.columns] = values.error
        done += len(tile)
    return Surface(columns, rows, grids, plane, evaluator.unit)


def _estimated(
    evaluator: Evaluator,
    plane: Plane,
    x: Floats,
    y: Floats,
    names: Sequence[str],
    accuracy: float,
    seed: int,
    on_round: Callable[[Surface], object] | None,
    progress: Progress | None,
    cancelled: CancelCheck | None,
) -> Surface:
    def as_surface(found: EstimatedSurface) -> Surface:
        return Surface(x, y, dict(found.grids), plane, evaluator.unit, found.evaluated, "; ".join(found.notes))

    found = estimate_surface(
        evaluator,
        plane.vectors,
        x,
        y,
        names,
        accuracy=accuracy,
        seed=seed,
        points=list(plane.points.values()),
        on_round=None if on_round is None else lambda found: on_round(as_surface(found)),
        progress=progress,
        cancelled=cancelled,
    )
    return as_surface(found)


def evaluate_tile(
    evaluator: Evaluator,
    basis: Basis,
    x: Floats,
    y: Floats,
    tile: Tile,
    *,
    splits: Sequence[str] | None = None,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> dict[str, Values]:
    """Values at the points of a tile, in its order; ``basis`` is that of a plane: origin, u, v."""
    coefficients = np.stack([np.ones(len(tile)), x[tile.columns], y[tile.rows]], axis=1)
    return evaluator.at(basis, coefficients, splits=splits, progress=progress, cancelled=cancelled)


def _report_tile(progress: Progress, before: int, points: int, total: int, done: int, whole: int) -> object:
    """Report progress of a tile as progress of the surface, in points."""
    return progress(before + points * done // whole, total)


def _axes(
    plane: Plane,
    resolution: int | tuple[int, int],
    x: ArrayLike | None,
    y: ArrayLike | None,
    range: tuple[Coordinates, Coordinates] | None,
    margin: float,
    largest: int,
) -> tuple[Floats, Floats]:
    """The grid lines, checked: not too few, not too many, finite."""
    if (x is None) != (y is None):
        raise ValueError("only one of x and y is given; give the grid lines of both axes or of neither")
    if x is None or y is None:
        sides = resolution if isinstance(resolution, tuple | list) else (resolution,)
        if any(isinstance(side, int) and side > largest for side in sides):
            raise ValueError(
                f"resolution is {resolution}; at most {largest} points a side are computed: "
                "lower it, or raise largest_resolution"
            )
        return plane.axes(resolution, margin=margin, range=range)
    axes = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    for name, lines in zip("xy", axes, strict=True):
        if lines.ndim != 1 or not SMALLEST_RESOLUTION <= len(lines) <= largest or not np.isfinite(lines).all():
            raise ValueError(
                f"{name} has shape {lines.shape}; give {SMALLEST_RESOLUTION} to {largest} finite coordinates of grid "
                "lines, or raise largest_resolution"
            )
    return axes
