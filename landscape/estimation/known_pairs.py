"""The losses of samples at points that were computed so far, for one split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]
Losses = NDArray[np.float32]
Wrong = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Request:
    """Pairs to compute: some samples (None: all) at some points of the grid.

    ``statistics`` are the samples of BatchNorm statistics, which each point needs beside the others; None without.
    """

    points: Indices
    samples: Indices | None
    kind: str
    statistics: Indices | None = None

    def pairs(self, size: int) -> int:
        each = size if self.samples is None else len(self.samples)
        if self.statistics is not None and not (self.samples is None and len(self.statistics) == size):
            each += len(self.statistics)
        return len(self.points) * each


@dataclass(frozen=True, eq=False)
class Column:
    """Losses at one point, and which samples are wrong (None where the loss has no error)."""

    loss: Losses
    wrong: Wrong | None

    def extended(self, other: Column) -> Column:
        wrong = None if self.wrong is None or other.wrong is None else np.concatenate([self.wrong, other.wrong])
        return Column(np.concatenate([self.loss, other.loss]), wrong)

    def chosen(self, samples: Indices) -> Column:
        return Column(self.loss[samples], None if self.wrong is None else self.wrong[samples])


class KnownPairs:
    """``coarse`` has all samples at a point, ``ranked`` the first ones of the ranking.

    ``trials`` are these at coarse points with BatchNorm statistics of a sample.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.coarse: dict[int, Column] = {}
        self.ranked: dict[int, Column] = {}
        self.trials: dict[int, Column] = {}
        self.computed = 0

    def depth(self, point: int) -> int:
        """How many samples of the ranking are known at a point."""
        return len(self.ranked[point].loss) if point in self.ranked else 0

    def column(self, point: int, order: Indices, count: int) -> Column:
        """The first samples of the ranking at a point."""
        if point in self.coarse:
            return self.coarse[point].chosen(order[:count])
        return self.ranked[point].chosen(np.arange(count))

    def losses(self, points: Indices, order: Indices, count: int) -> NDArray[np.float64]:
        """The losses of the first samples of the ranking at points, (samples, points)."""
        columns = [self.column(int(point), order, count).loss for point in points]
        return np.stack(columns, axis=1).astype(np.float64)

    def wrong(self, points: Indices, order: Indices, count: int) -> NDArray[np.float64]:
        columns = [self.column(int(point), order, count).wrong for point in points]
        return np.stack([column for column in columns if column is not None], axis=1).astype(np.float64)

    @property
    def diverged(self) -> set[int]:
        """Points at which a loss is not finite: so is their mean."""
        both = (*self.coarse.items(), *self.ranked.items())
        return {point for point, column in both if not np.isfinite(column.loss).all()}
