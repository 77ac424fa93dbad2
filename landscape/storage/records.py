"""What a landscape holds, as plain records: numpy arrays, numbers and words, nothing of torch.

Losses are in nats and errors are fractions in [0, 1]; percent is for people and appears only in figures and text. On a
grid a row is one value of y. A value that overflowed is ``inf`` and counts as computed; NaN says "not computed" on a
grid, and an array that is NaN everywhere says "this quantity was never recorded" (files of other tools may lack it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
    """The name, if it can name a minimum, plane, curve, point or split; else a ValueError that says what can.

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
class Grid:
    """Loss and error of one split at every point of a plane's grid, shape (rows, columns)."""

    loss: Floats
    error: Floats

    def __getitem__(self, quantity: str) -> Floats:
        return _quantity(self, quantity)


@dataclass(frozen=True, eq=False)
class PathValues:
    """Loss and error of one split along a path, shape (n,)."""

    loss: Floats
    error: Floats

    def __getitem__(self, quantity: str) -> Floats:
        return _quantity(self, quantity)


@dataclass(eq=False)
class PlaneRecord:
    """A plane's grid, what was computed on it so far, and where everything with a name lies.

    ``points`` has all named points, those off the plane projected on it, and ``distances`` how far off each one is.
    ``paths`` has projected curves under their own name and trajectories under ``trajectory:<minimum>``, each (n, 2).
    ``unit`` says what a step of 1 on the axes is: a distance, except in files of tools that use other steps.
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

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.y), len(self.x)

    @property
    def complete(self) -> bool:
        return bool(self.done.all())

    def is_projected(self, point: str) -> bool:
        """Whether a named point lies visibly off the plane: by more than a hundredth of the plane's width."""
        return self.distances.get(point, 0.0) > 0.01 * float(max(np.ptp(self.x), np.ptp(self.y)))

    @classmethod
    def empty(cls, name: str, kind: str, x: Floats, y: Floats, splits: tuple[str, ...], **rest: Any) -> PlaneRecord:
        """A plane of which nothing is computed yet: NaN everywhere, nothing done."""
        shape = (len(y), len(x))
        grids = {split: Grid(np.full(shape, np.nan), np.full(shape, np.nan)) for split in splits}
        return cls(name, kind, x, y, np.zeros(shape, dtype=bool), grids, **rest)


@dataclass(eq=False)
class PathRecord:
    """Values along a curve or a straight line between two minima, at parameters t and arc lengths ``arc``."""

    name: str
    kind: str
    start: str
    end: str
    t: Floats
    arc: Floats
    splits: dict[str, PathValues]
    note: str = ""


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
    """One trained network: how it was trained, what each epoch measured, how sparse its layers are.

    ``epochs`` has one array a quantity, all of one length: epoch, train_loss, train_accuracy, test_loss, test_accuracy,
    sparsity, zero_groups, learning_rate, threshold, angle, seconds, or those of them that were measured.
    """

    name: str
    optimizer: str
    settings: dict[str, Any] = field(default_factory=dict)
    epochs: dict[str, Floats] = field(default_factory=dict)
    layers: list[LayerRecord] = field(default_factory=list)
    final: dict[str, float] = field(default_factory=dict)
    checkpoint: str | None = None


def recorded(values: Floats) -> bool:
    """Whether the quantity was recorded at all: some value of it is not NaN."""
    return bool(values.size) and not bool(np.isnan(values).all())


def error_split(paths: Iterable[PathRecord]) -> str:
    """The split whose error is shown along paths: test, or train where the test error was never recorded."""
    paths = list(paths)
    known = {split for path in paths for split, values in path.splits.items() if recorded(values.error)}
    return "train" if "train" in known and "test" not in known else "test"


def line_name(start: str, end: str) -> str:
    """The key of a straight line in a landscape.

    >>> line_name("sgd", "altsdp")
    'sgd-altsdp'
    """
    return f"{start}-{end}"


def between(paths: Mapping[str, PathRecord], start: str, end: str) -> PathRecord | None:
    """The first path that joins the two minima, in either direction."""
    return next((path for path in paths.values() if {path.start, path.end} == {start, end}), None)


def _quantity(values: Grid | PathValues, quantity: str) -> Floats:
    if quantity == "loss":
        return values.loss
    if quantity == "error":
        return values.error
    raise ValueError(f"value is {quantity!r}; choose loss or error")
