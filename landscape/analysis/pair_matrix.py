"""Barrier and rise of the straight line between every two minima, as two square tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from valleyscope.landscape.analysis.barriers import Barrier, Estimate, measured_barrier, path_losses
from valleyscope.landscape.analysis.path_estimates import known_estimate
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.matrix_record import MatrixRecord
from valleyscope.landscape.storage.records import PathRecord, between, recorded

QUANTITIES = ("barrier", "rise")


@dataclass(frozen=True)
class PairMatrix:
    """What the lines between minima measure: a ``Barrier`` for each pair in the order of ``minima``, None if unknown.

    ``lines[i][j]`` equals ``lines[j][i]`` but for the sign of its ends; the diagonal is None.
    """

    minima: tuple[str, ...]
    split: str
    lines: tuple[tuple[Barrier | None, ...], ...]
    level: float = 0.95
    tolerance: float = 0.05

    def __iter__(self) -> Iterator[tuple[str, str, Barrier | None]]:
        """Every pair once, with its line."""
        for row, first in enumerate(self.minima):
            for column in range(row + 1, len(self.minima)):
                yield first, self.minima[column], self.lines[row][column]

    def values(self, quantity: str) -> list[list[float | None]]:
        """A square of barriers or rises; None on the diagonal and where a line is missing."""
        return [[_number(line, quantity) for line in row] for row in self.lines]

    def bounds(self, quantity: str, bound: str) -> list[list[float | None]]:
        """The same square of the ends of the intervals, ``low`` or ``high``; None also where there is no interval."""
        return [[_bound(line, quantity, bound) for line in row] for row in self.lines]

    def to_json(self) -> dict[str, Any]:
        return {
            "minima": list(self.minima),
            "split": self.split,
            "level": self.level,
            "tolerance": self.tolerance,
            **{
                quantity: {
                    "value": self.values(quantity),
                    "low": self.bounds(quantity, "low"),
                    "high": self.bounds(quantity, "high"),
                }
                for quantity in QUANTITIES
            },
        }

    def to_record(self) -> MatrixRecord:
        """The matrix as arrays for ``landscape.h5``."""
        squares = {quantity: self.values(quantity) for quantity in QUANTITIES}
        squares |= {
            f"{quantity}_{bound}": self.bounds(quantity, bound) for quantity in QUANTITIES for bound in ("low", "high")
        }
        # None becomes NaN; without minima the square has no rows that would tell its shape.
        shape = (len(self.minima),) * 2
        arrays = {name: np.array(square, dtype=np.float64).reshape(shape) for name, square in squares.items()}
        return MatrixRecord(self.minima, self.split, self.level, arrays)


def pair_matrix(landscape: Landscape, *, aligned: bool = False) -> PairMatrix:
    """Barrier and rise between every two minima of a landscape, from the profiles of its lines.

    Intervals are there where they were computed with the verdict; files of earlier versions have none. With
    ``aligned``, the hidden units of the later minimum of each pair are in the order of the earlier one.
    """
    if aligned:
        landscape = with_aligned_lines(landscape)
    names = tuple(landscape.minima)
    split = judged_split(landscape)
    rows = tuple(tuple(_line(landscape, split, first, second) for second in names) for first in names)
    return PairMatrix(names, split, rows, judging(landscape, "level", 0.95), judging(landscape, "tolerance", 0.05))


def with_aligned_lines(landscape: Landscape) -> Landscape:
    """The landscape with its aligned lines, and what its verdict keeps of them, in place of those as given."""
    verdict = landscape.verdict
    if verdict is not None:
        verdict = {**verdict, "paths": verdict.get("aligned_paths")}
    return replace(landscape, lines=landscape.aligned, verdict=verdict)


def matrix_json(landscape: Landscape) -> dict[str, Any]:
    """The matrix as JSON values; `aligned` has barrier and rise of the aligned lines, where there are some."""
    content = pair_matrix(landscape).to_json()
    if landscape.aligned:
        other = pair_matrix(landscape, aligned=True).to_json()
        content["aligned"] = {quantity: other[quantity] for quantity in QUANTITIES}
    return content


def judging(landscape: Landscape, name: str, default: float) -> float:
    """A setting of the verdict: as it was used, else as the spec has it."""
    for source in (landscape.verdict, landscape.spec.get("verdict")):
        value = source.get(name) if isinstance(source, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return value
    return default


def judged_split(landscape: Landscape) -> str:
    """The data that the verdict uses; without a verdict train, or test where only its losses are known."""
    if landscape.verdict and isinstance(split := landscape.verdict.get("split"), str):
        return split
    known = {
        split for line in landscape.lines.values() for split, values in line.splits.items() if recorded(values.loss)
    }
    return "test" if "test" in known and "train" not in known else "train"


def _line(landscape: Landscape, split: str, first: str, second: str) -> Barrier | None:
    path = None if first == second else between(landscape.lines, first, second)
    return None if path is None else line_estimate(landscape, path, split, reverse=path.start != first)


def line_estimate(landscape: Landscape, path: PathRecord, split: str, *, reverse: bool = False) -> Barrier | None:
    """Barrier, rise and ends of a stored path, with intervals where they are known; None if a loss is missing."""
    losses = path_losses(path, split) if split in path.splits else None
    if losses is None:
        return None
    found = known_estimate(landscape.verdict, path.name) or measured_barrier(losses)
    return _reversed(found) if reverse else found


def _reversed(found: Barrier) -> Barrier:
    ends = found.ends
    if ends is None:
        return found
    low, high = (None if bound is None else -bound for bound in (ends.high, ends.low))
    return Barrier(found.value, found.low, found.high, rise=found.rise, ends=Estimate(-ends.value, low, high))


def _estimate(line: Barrier | None, quantity: str) -> Estimate | None:
    return line if line is None or quantity == "barrier" else line.rise


def _number(line: Barrier | None, quantity: str) -> float | None:
    found = _estimate(line, quantity)
    return None if found is None or math.isnan(found.value) else found.value


def _bound(line: Barrier | None, quantity: str, bound: str) -> float | None:
    found = _estimate(line, quantity)
    value: float | None = None if found is None else getattr(found, bound)
    return value
