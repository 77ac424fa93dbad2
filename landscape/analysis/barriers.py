"""The barrier, the rise and the ends of a path: how far the loss goes up along it, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from valleyscope.landscape.storage.records import PathRecord

Floats = NDArray[np.float64]

_CLOSE = 1e-9
CHUNK = 16
"""Resamplings at once: their weights for 60000 samples take 4 MB."""


def barrier(losses: ArrayLike) -> float:
    """Largest loss along a path minus the larger of its two ends; 0 if no inner point is above both.

    >>> barrier([0.0, 0.75, 0.25])
    0.5
    >>> barrier([0.0, 0.125, 0.25])
    0.0
    """
    return float(_barriers(_checked(losses)[None])[0])


def rise(losses: ArrayLike) -> float:
    """Largest minus smallest loss along a path: 0 only if the path is level.

    >>> rise([0.0, 0.75, 0.25]), rise([0.0, 0.125, 0.25])
    (0.75, 0.25)
    """
    return float(_rises(_checked(losses)[None])[0])


def end_difference(losses: ArrayLike) -> float:
    """Loss at the end of a path minus the loss at its start.

    >>> end_difference([0.5, 0.75, 0.25])
    -0.25
    """
    return float(_end_differences(_checked(losses)[None])[0])


def path_losses(path: PathRecord, split: str, value: str = "loss") -> Floats | None:
    """The losses (or errors) of a recorded path between t = 0 and t = 1; None if one is missing.

    Paths of other tools may extend beyond the ends, or lack the network at one of them.
    """
    inside = (path.t >= -_CLOSE) & (path.t <= 1.0 + _CLOSE)
    losses, t = getattr(path.splits[split], value)[inside], path.t[inside]
    if len(t) < 2 or t[0] > _CLOSE or t[-1] < 1.0 - _CLOSE or np.isnan(losses).any():
        return None
    return np.asarray(losses, dtype=np.float64)


def path_barrier(path: PathRecord, split: str) -> float | None:
    """The barrier of a recorded path between t = 0 and t = 1; None if a loss is missing."""
    losses = path_losses(path, split)
    return None if losses is None else barrier(losses)


@dataclass(frozen=True)
class Estimate:
    """A number and its bootstrap interval (None without per-sample values)."""

    value: float
    low: float | None = None
    high: float | None = None

    def surely_within(self, tolerance: float) -> bool:
        return (self.value if self.high is None else self.high) <= tolerance

    def surely_above(self, tolerance: float) -> bool:
        return (self.value if self.low is None else self.low) > tolerance


@dataclass(frozen=True)
class Barrier(Estimate):
    """The barrier of a path and, from the same resamplings, its rise and the difference of its ends.

    ``rise`` and ``ends`` are None where only the barrier is known, as in files of earlier versions without the path.
    """

    rise: Estimate | None = None
    ends: Estimate | None = None


def measured_barrier(losses: ArrayLike) -> Barrier:
    """Barrier, rise and ends of mean losses, without intervals."""
    return Barrier(barrier(losses), rise=Estimate(rise(losses)), ends=Estimate(end_difference(losses)))


def bootstrap_barriers(
    paths: Sequence[NDArray[np.floating]], *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> list[Barrier]:
    """Barriers, rises and ends of several paths from per-sample losses (points, samples), with percentile intervals.

    Every resampling draws one set of samples with replacement and uses it at all points of all paths, so the
    difficulty of samples cancels in the differences. The interval is widened to contain the estimate.
    """
    sizes = {path.shape[1] for path in paths}
    if len(sizes) != 1:
        raise ValueError(f"the paths have losses of {sorted(sizes)} samples; they must be the same samples")
    stacked = np.concatenate([np.asarray(path, dtype=np.float32) for path in paths])
    ends = np.cumsum([0] + [len(path) for path in paths])
    infinite = np.isposinf(stacked)
    overflowing = np.flatnonzero(infinite.any(axis=1))
    # Zero times infinity is NaN: infinite losses are counted separately.
    finite = np.where(infinite, np.float32(0), stacked).T if len(overflowing) else stacked.T
    marks = infinite[overflowing].T.astype(np.float32)
    drawn: list[list[Floats]] = [[] for _ in paths]
    for weights in _resampling_weights(sizes.pop(), resamples, seed):
        means = (weights @ finite).astype(np.float64)
        if len(overflowing):
            means[:, overflowing] = np.where(weights @ marks > 0, np.inf, means[:, overflowing])
        for index in range(len(paths)):
            along = means[:, ends[index] : ends[index + 1]]
            drawn[index].append(np.stack([measure(along) for measure in _MEASURES]))
    return [
        _with_intervals(path.mean(axis=1, dtype=np.float64), np.concatenate(values, axis=1), level)
        for path, values in zip(paths, drawn, strict=True)
    ]


def _barriers(losses: Floats) -> Floats:
    """Barriers of several paths given as rows; 0 where the higher end is infinite."""
    higher = np.maximum(losses[:, 0], losses[:, -1])
    top = losses.max(axis=1)
    above: Floats = np.zeros_like(top)
    np.subtract(top, higher, out=above, where=top > higher)
    return above


def _rises(losses: Floats) -> Floats:
    """Highest minus lowest loss of several paths given as rows; infinite where a loss is."""
    top = losses.max(axis=1)
    above: Floats = np.full_like(top, np.inf)
    np.subtract(top, losses.min(axis=1), out=above, where=np.isfinite(top))
    return above


def _end_differences(losses: Floats) -> Floats:
    """Last minus first loss of several paths given as rows; 0 where both are infinite."""
    first, last = losses[:, 0], losses[:, -1]
    difference: Floats = np.zeros_like(first)
    np.subtract(last, first, out=difference, where=first != last)
    return difference


_MEASURES: tuple[Callable[[Floats], Floats], ...] = (_barriers, _rises, _end_differences)


def _checked(losses: ArrayLike) -> Floats:
    values = np.asarray(losses, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"losses have shape {values.shape}; a path has one loss at each of two or more points")
    if np.isnan(values).any():
        raise ValueError("losses contain NaN; a loss that overflows is inf")
    return values


def _resampling_weights(samples: int, resamples: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Rows of multinomial weights (draws of each sample / samples), chunk by chunk."""
    generator = np.random.default_rng(seed)
    for begin in range(0, resamples, CHUNK):
        rows = min(CHUNK, resamples - begin)
        drawn = generator.integers(samples, size=(rows, samples), dtype=np.int32)
        counts = np.stack([np.bincount(row, minlength=samples) for row in drawn])
        yield counts.astype(np.float32) / np.float32(samples)


def _with_intervals(means: Floats, drawn: Floats, level: float) -> Barrier:
    """Barrier, rise and ends of mean losses, with intervals from rows of resampled values of each."""
    found = [
        _interval(float(measure(means[None])[0]), row, level) for measure, row in zip(_MEASURES, drawn, strict=True)
    ]
    return Barrier(found[0].value, found[0].low, found[0].high, rise=found[1], ends=found[2])


def _interval(value: float, drawn: Floats, level: float) -> Estimate:
    # The outer order statistics: interpolating between a number and infinity gives NaN.
    low = float(np.quantile(drawn, (1 - level) / 2, method="lower"))
    high = float(np.quantile(drawn, (1 + level) / 2, method="higher"))
    return Estimate(value, min(low, value), max(high, value))
