"""The records of a landscape: numpy arrays, numbers and text, without torch.

Losses are in nats unless ``loss_unit`` says otherwise (empty: a unit of their own). Errors are fractions in [0, 1]
(percent only in figures and text). A row of a grid is one value of y. A value that overflowed is ``inf`` and counts as
computed. NaN means "not computed" on a grid; an array that is all NaN means "never recorded" (files of other tools may
lack a quantity).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Coordinates = tuple[float, float]

PLANE_KINDS: Final = ("through", "around", "principal")
PATH_KINDS: Final = ("bezier", "polychain", "line", "curve")
DISTANCE: Final = "distance in weight space"
TRAJECTORY: Final = "trajectory:"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


def checked_name(name: str, what: str) -> str:
    """The name of a minimum, plane, curve, point or split if it is valid, else a ValueError.

    >>> checked_name("valley.bend", "point")
    'valley.bend'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"{what} has the name {name!r}; use 1 to 64 letters, digits, dots, dashes or underscores, "
            "the first a letter, digit or underscore"
        )
    return name


@dataclass(frozen=True, eq=False)
class _LossAndError:
    loss: Floats
    error: Floats

    def __getitem__(self, quantity: str) -> Floats:
        if quantity not in ("loss", "error"):
            raise ValueError(f"value is {quantity!r}; choose loss or error")
        values: Floats = getattr(self, quantity)
        return values


@dataclass(frozen=True, eq=False)
class Grid(_LossAndError):
    """Loss and error of one split at every point of a plane's grid, shape (rows, columns).

    Of an estimated surface also the standard errors of both, 0 where a value is exact.
    """

    loss_error: Floats | None = None
    error_error: Floats | None = None

    def __getitem__(self, quantity: str) -> Floats:
        if quantity in ("loss_error", "error_error"):
            values = getattr(self, quantity)
            return np.zeros_like(self.loss) if values is None else np.asarray(values)
        return super().__getitem__(quantity)

    @property
    def is_estimated(self) -> bool:
        return self.loss_error is not None


class PathValues(_LossAndError):
    """Loss and error of one split along a path, shape (n,)."""


@dataclass(eq=False)
class PlaneRecord:
    """A plane's grid, the values computed so far, and the coordinates of all named points.

    ``points`` has the coordinates of all named points, projected on the plane, ``distances`` their distances from it.
    ``paths`` has projected curves by name and trajectories as ``trajectory:<minimum>``, each (n, 2). ``unit`` is the
    unit of the axes: a distance, except in files of some other tools. ``axes`` says where x and y lead, if the record
    knows more than its kind. ``explained`` is the share of the squared distances of snapshots that each principal
    direction carries; ``offsets`` has, for trajectories among the paths, the distance of every snapshot from the plane,
    shape (n,).
    """

    name: str
    kind: str
    x: Floats
    y: Floats
    done: Mask
    splits: dict[str, Grid]
    points: dict[str, Coordinates] = field(default_factory=dict)
    paths: dict[str, Floats] = field(default_factory=dict)
    defining: tuple[str, ...] = ()
    distances: dict[str, float] = field(default_factory=dict)
    note: str = ""
    unit: str = DISTANCE
    loss_unit: str = "nats"
    axes: tuple[str, ...] = ()
    estimate: dict[str, Any] = field(default_factory=dict)
    """Of an estimated surface: accuracy, evaluated (the share of all pairs computed), settled, exact splits, note."""
    explained: Coordinates | None = None
    offsets: dict[str, Floats] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.y), len(self.x)

    @property
    def complete(self) -> bool:
        return bool(self.done.all())

    @property
    def evaluated(self) -> float:
        """The share of all pairs of a sample and a point that was computed; 1 where the surface is exact."""
        return float(self.estimate.get("evaluated", 1.0))

    def is_projected(self, point: str) -> bool:
        """Whether a named point is off the plane by more than a hundredth of the plane's width."""
        return self.distances.get(point, 0.0) > 0.01 * float(max(np.ptp(self.x), np.ptp(self.y)))

    @classmethod
    def empty(cls, name: str, kind: str, x: Floats, y: Floats, splits: tuple[str, ...], **rest: Any) -> PlaneRecord:
        """A plane without computed values: NaN everywhere, nothing done."""
        shape = (len(y), len(x))
        grids = {split: Grid(np.full(shape, np.nan), np.full(shape, np.nan)) for split in splits}
        return cls(name, kind, x, y, np.zeros(shape, dtype=bool), grids, **rest)


@dataclass(eq=False)
class PathRecord:
    """Values along a curve or a straight line between two minima, at parameters t and arc lengths ``arc``.

    ``fit`` says how a curve was fitted, as arrays of one length: epoch, loss (the mean over the curve, in nats),
    learning_rate, and bend1, bend2, ... with the distance of each bend from where it started. It is empty for a line.
    """

    name: str
    kind: str
    start: str
    end: str
    t: Floats
    arc: Floats
    splits: dict[str, PathValues]
    note: str = ""
    fit: dict[str, Floats] = field(default_factory=dict)
    loss_unit: str = "nats"


@dataclass(frozen=True)
class LayerRecord:
    """How many groups and parameters of one layer are exactly zero."""

    name: str
    groups: int
    zero_groups: int
    parameters: int
    zero_parameters: int


@dataclass(eq=False)
class MinimumRecord:
    """One trained network: its settings, the metrics of each epoch, the sparsity of its layers.

    ``epochs`` has arrays of one length: epoch, train_loss, train_accuracy, test_loss, test_accuracy, sparsity,
    zero_groups, learning_rate, threshold, angle, seconds, or some of them. ``pruning`` says what a pruning method did:
    its name, when its threshold ended, accuracy before and after its cut, multiply-adds left, and a text. ``compact``
    has the size and latency of the network before and after its zero groups were removed (``smaller``), or why they
    were not; None if it was not tried.
    """

    name: str
    optimizer: str
    settings: dict[str, Any] = field(default_factory=dict)
    epochs: dict[str, Floats] = field(default_factory=dict)
    layers: list[LayerRecord] = field(default_factory=list)
    final: dict[str, float] = field(default_factory=dict)
    checkpoint: str | None = None
    pruning: dict[str, Any] = field(default_factory=dict)
    compact: dict[str, Any] | None = None


def recorded(values: Floats) -> bool:
    """Whether the quantity was recorded: not all values are NaN."""
    return bool(values.size) and not bool(np.isnan(values).all())


def error_split(paths: Iterable[PathRecord]) -> str:
    """The split whose error is shown along paths: test, or train where the test error was never recorded."""
    paths = list(paths)
    known = {split for path in paths for split, values in path.splits.items() if recorded(values.error)}
    return "train" if "train" in known and "test" not in known else "test"


def final_metrics(splits: Mapping[str, Any], index: int) -> dict[str, float]:
    """Loss and accuracy of every split at one point of a path."""
    metrics: dict[str, float] = {}
    for split, values in splits.items():
        metrics[f"{split}_loss"] = float(values.loss[index])
        if recorded(values.error):
            metrics[f"{split}_accuracy"] = 1.0 - float(values.error[index])
    return metrics


def line_name(start: str, end: str) -> str:
    """The key of a straight line in a landscape.

    >>> line_name("sgd", "altsdp")
    'sgd-altsdp'
    """
    return f"{start}-{end}"


def coinciding_lines(minima: Iterable[str]) -> str | None:
    """The key that two straight lines between these minima would share; None if every line has its own.

    >>> coinciding_lines(["sgd-adam", "sgd", "adam-sgd"])
    'sgd-adam-sgd'
    """
    counts = Counter(line_name(*pair) for pair in combinations(minima, 2))
    return next((name for name, count in counts.items() if count > 1), None)


def between(paths: Mapping[str, PathRecord], start: str, end: str) -> PathRecord | None:
    """The first path that joins the two minima, in either direction."""
    return next((path for path in paths.values() if {path.start, path.end} == {start, end}), None)
