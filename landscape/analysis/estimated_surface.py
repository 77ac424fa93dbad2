"""Surfaces of which every value has a standard error, from a small part of all pairs of a sample and a point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.cancellation import CancelCheck
from valleyscope.landscape.estimation.estimator import Estimate
from valleyscope.landscape.estimation.links import Link
from valleyscope.landscape.estimation.requests import compute
from valleyscope.landscape.estimation.rounds import FEWEST_SAMPLES, SplitRounds
from valleyscope.landscape.estimation.statistics_sample import FEWEST_STATISTICS
from valleyscope.landscape.evaluation.evaluator import Basis, Evaluator, Progress
from valleyscope.landscape.geometry.planes import Coordinates
from valleyscope.landscape.storage.records import Grid

Floats = NDArray[np.float64]


def checked_accuracy(accuracy: object) -> float:
    """The accuracy as a number; a ValueError unless it is above 0 and at most 1."""
    if isinstance(accuracy, bool) or not isinstance(accuracy, Real) or not 0 < float(accuracy) <= 1:
        raise ValueError(
            f"accuracy is {accuracy!r}; give the relative standard error of the loss that is good enough, above 0 and "
            "at most 1, such as 0.01, or None for an exact surface"
        )
    return float(accuracy)


def rounds_of(
    evaluator: Evaluator,
    split: str,
    x: Floats,
    y: Floats,
    *,
    accuracy: float,
    seed: int,
    points: Sequence[Coordinates],
) -> SplitRounds:
    """The rounds in which a split is estimated; ``points`` with a name are exact where they are grid points."""
    size = len(evaluator.splits[split])
    link = Link("margin" if evaluator.is_classification else "identity")
    source = evaluator.statistics_split
    statistics = None if source is None else len(evaluator.splits[source])
    rounds = SplitRounds(size, x, y, accuracy, seed, link, nearest_points(x, y, points), statistics)
    if evaluator.why_exact is not None:
        rounds.exact = True
    return rounds


def why_exact(evaluator: Evaluator, split: str) -> str:
    """Why a split is computed exactly."""
    size = len(evaluator.splits[split])
    if evaluator.why_exact is not None:
        return f"{split} is exact: {evaluator.why_exact}"
    if size < FEWEST_SAMPLES:
        return f"{split} is exact: it has {size} samples, and estimates need {FEWEST_SAMPLES}"
    source = evaluator.statistics_split
    if source is not None and len(evaluator.splits[source]) < FEWEST_STATISTICS:
        count = len(evaluator.splits[source])
        return f"{split} is exact: BatchNorm statistics of {count} samples; estimates need {FEWEST_STATISTICS}"
    return f"{split} is exact: an estimate this accurate would be hardly less work"


def nearest_points(x: Floats, y: Floats, points: Sequence[Coordinates]) -> tuple[int, ...]:
    """The grid points next to coordinates inside the grid, row by row."""
    found = []
    for place, height in points:
        if x[0] <= place <= x[-1] and y[0] <= height <= y[-1]:
            found.append(int(np.argmin(abs(y - height))) * len(x) + int(np.argmin(abs(x - place))))
    return tuple(dict.fromkeys(found))


def grid_of(estimate: Estimate, shape: tuple[int, int]) -> Grid:
    """An estimate as a grid."""
    found = (estimate.loss, estimate.error, estimate.loss_error, estimate.error_error)
    return Grid(*(values.reshape(shape).copy() for values in found))


@dataclass(eq=False)
class EstimatedSurface:
    """Grids by split, what share of all pairs was computed, and what was computed exactly, and why."""

    grids: dict[str, Grid] = field(default_factory=dict)
    evaluated: float = 1.0
    notes: list[str] = field(default_factory=list)


OnRound = Callable[[EstimatedSurface], object]


def estimate_surface(
    evaluator: Evaluator,
    basis: Basis,
    x: Floats,
    y: Floats,
    splits: Sequence[str],
    *,
    accuracy: float,
    seed: int = 0,
    points: Sequence[Coordinates] = (),
    on_round: OnRound | None = None,
    progress: Progress | None = None,
    cancelled: CancelCheck | None = None,
) -> EstimatedSurface:
    """Estimate a surface round by round until its errors are small enough; ``on_round`` gets it after each round."""
    accuracy = checked_accuracy(accuracy)
    shape = len(y), len(x)
    rounds = {split: rounds_of(evaluator, split, x, y, accuracy=accuracy, seed=seed, points=points) for split in splits}
    result = EstimatedSurface()
    sizes = {split: len(evaluator.splits[split]) for split in splits}
    evaluated: dict[str, float] = {}
    meter = _Meter(progress, shape[0] * shape[1], len(splits))
    for split, plan in rounds.items():
        while requests := plan.next():
            for request in requests:
                plan.add(
                    request,
                    compute(evaluator, basis, x, y, split, request, progress=meter.inside(), cancelled=cancelled),
                )
            meter.end_round()
            if on_round is not None:
                result.grids[split] = grid_of(plan.estimate(), shape)
                result.evaluated = _share({**evaluated, split: plan.evaluated}, sizes)
                on_round(result)
        if plan.exact:
            result.notes.append(why_exact(evaluator, split))
            result.grids[split] = _exact(evaluator, basis, x, y, split, meter, cancelled)
            evaluated[split] = 1.0
        else:
            result.grids[split] = grid_of(plan.estimate(), shape)
            evaluated[split] = plan.evaluated
        meter.end_split()
    result.evaluated = _share(evaluated, sizes)
    return result


def _exact(
    evaluator: Evaluator, basis: Basis, x: Floats, y: Floats, split: str, meter: _Meter, cancelled: CancelCheck | None
) -> Grid:
    rows, columns = np.divmod(np.arange(len(x) * len(y)), len(x))
    coefficients = np.stack([np.ones(len(rows)), x[columns], y[rows]], axis=1)
    found = evaluator.at(basis, coefficients, splits=[split], progress=meter.inside(last=True), cancelled=cancelled)
    values = found[split]
    shape = len(y), len(x)
    zero = np.zeros(shape)
    error = np.where(np.isnan(values.error.reshape(shape)), np.nan, zero)
    return Grid(values.loss.reshape(shape), values.error.reshape(shape), zero, error)


def _share(evaluated: Mapping[str, float], sizes: Mapping[str, int]) -> float:
    """The share of all pairs of all splits."""
    return sum(evaluated.get(split, 0.0) * size for split, size in sizes.items()) / sum(sizes.values())


class _Meter:
    """Progress in points where the number of rounds is unknown: each round takes half of what is left."""

    def __init__(self, progress: Progress | None, points: int, splits: int) -> None:
        self._progress = progress
        self._points = points
        self._splits = splits
        self._split = 0
        self._done = 0.0

    def inside(self, *, last: bool = False) -> Progress | None:
        if self._progress is None:
            return None
        room = (1.0 - self._done) * (1.0 if last else 0.5)
        return lambda done, whole: self._report(self._done + room * done / max(1, whole))

    def end_round(self) -> None:
        self._done = (1.0 + self._done) / 2

    def end_split(self) -> None:
        self._split, self._done = self._split + 1, 0.0
        self._report(0.0)

    def _report(self, share: float) -> None:
        if self._progress is not None:
            self._progress(math.floor(self._points * (self._split + share) / self._splits), self._points)
