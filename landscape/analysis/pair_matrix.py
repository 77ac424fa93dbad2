"""Barrier and rise of the straight line between every two minima, as two square tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from valleyscope.landscape.analysis.barriers import Barrier, Estimate, measured_barrier, path_losses
from valleyscope.landscape.analysis.path_estimates import known_estimate
from valleyscope.landscape.storage.landscape_file import Landscape
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

    def __iter__(self) -> Iterator[tuple[str, str, Barrier | None]]:
        """Every pair once, with its line."""
        for row, first in enumerate(self.minima):
            for column in range(row + 1, len(self.minima)):
                yield first, self.minima[column], self.lines[row][column]

    def values(self, quantity: str) -> list[list[float | None]]:
        """A square of barriers or rises; None on the diagonal and where a line is missing."""
        return [[_number(line, quantity) for line in row] for row in self.lines]

    def to_json(self) -> dict[str, Any]:
        return {
            "minima": list(self.minima),
            "split": self.split,
            "level": self.level,
            **{
                quantity: {
                    "value": self.values(quantity),
                    "low": [[_bound(line, quantity, "low") for line in row] for row in self.lines],
                    "high": [[_bound(line, quantity, "high") for line in row] for row in self.lines],
                }
                for quantity in QUANTITIES
            },
        }


def pair_matrix(landscape: Landscape) -> PairMatrix:
    """Barrier and rise between every two minima of a landscape, from the profiles of its lines.

    Intervals are there where they were computed with the verdict; files of earlier versions have none.
    """
    names = tuple(landscape.minima)
    stored = landscape.verdict or {}
    split = stored.get("split") or _split(landscape)
    rows = tuple(tuple(_line(landscape, split, first, second) for second in names) for first in names)
    return PairMatrix(names, split, rows, stored.get("level", 0.95))


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


def _split(landscape: Landscape) -> str:
    known = {
        split for line in landscape.lines.values() for split, values in line.splits.items() if recorded(values.loss)
    }
    return "test" if "test" in known and "train" not in known else "train"


def _estimate(line: Barrier | None, quantity: str) -> Estimate | None:
    return line if line is None or quantity == "barrier" else line.rise


def _number(line: Barrier | None, quantity: str) -> float | None:
    found = _estimate(line, quantity)
    return None if found is None or math.isnan(found.value) else found.value


def _bound(line: Barrier | None, quantity: str, bound: str) -> float | None:
    found = _estimate(line, quantity)
    value: float | None = None if found is None else getattr(found, bound)
    return value
