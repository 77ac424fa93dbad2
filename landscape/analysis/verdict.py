"""The verdict: do two minima lie in one basin, are they joined by a curve only, or are they separate?

The straight line between them, compared with the line to a control minimum, tells one basin from two. A flat curve
proves little: unrelated minima are joined by one, too (Garipov et al. 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.analysis.barriers import Barrier, barrier, bootstrap_barriers
from valleyscope.landscape.analysis.verdict_text import finding, guessing_note, sentence
from valleyscope.landscape.evaluation.guessing_baseline import is_guessing

__all__ = ["Barrier", "Control", "Spread", "Trend", "Verdict", "VerdictKind", "barrier", "verdict"]

Floats = NDArray[np.floating]


class VerdictKind(StrEnum):
    """The result at a given tolerance."""

    ONE_BASIN = "one basin"
    JOINED_BY_A_CURVE_ONLY = "joined by a curve only"
    SEPARATE = "separate"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Spread:
    """Smallest, largest and mean value along a path."""

    min: float
    max: float
    mean: float


@dataclass(frozen=True)
class Trend:
    """The loss at both ends of a path, and whether it rises steadily from one to the other."""

    start: float
    end: float
    steady: bool


@dataclass(frozen=True)
class Control:
    """Barriers to an unrelated minimum, for comparison."""

    name: str
    line: Barrier
    curve: Barrier | None = None


@dataclass(frozen=True)
class Verdict:
    """The verdict on two minima with its numbers and notes.

    ``guessing_networks`` has the loss of each network that is hardly better than ``guessing``, the loss of always
    predicting the class frequencies.
    """

    kind: VerdictKind
    between: tuple[str, str]
    line: Barrier
    trend: Trend
    curve: Barrier | None = None
    curve_name: str = "curve"
    control: Control | None = None
    tolerance: float = 0.05
    split: str = "train"
    level: float = 0.95
    resamples: int = 1000
    guessing: float | None = None
    guessing_networks: Mapping[str, float] = field(default_factory=dict)
    test_error: Mapping[str, Spread] = field(default_factory=dict)
    sharpness: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return sentence(self)

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON values; a number that is not finite is null and explained in the notes."""
        content = {
            "kind": str(self.kind),
            "finding": finding(self),
            "sentence": self.sentence,
            "tolerance": self.tolerance,
            "split": self.split,
            "between": list(self.between),
            "line": _barrier_json(self.line),
            "curve": None if self.curve is None else {"name": self.curve_name, **_barrier_json(self.curve)},
            "control": None
            if self.control is None
            else {
                "name": self.control.name,
                "line": _barrier_json(self.control.line),
                "curve": None if self.control.curve is None else _barrier_json(self.control.curve),
            },
            "sharpness": {name: dict(values) for name, values in self.sharpness.items()},
            "test_error": {path: asdict(spread) for path, spread in self.test_error.items()},
            "level": self.level,
            "bootstrap": self.resamples,
            "notes": list(self.notes),
        }
        return {name: _finite(value) for name, value in content.items()}


def verdict(
    line: Any,
    curve: Any = None,
    control: Any = None,
    control_curve: Any = None,
    *,
    between: tuple[str, str] = ("start", "end"),
    curve_name: str = "curve",
    control_name: str = "control",
    tolerance: float = 0.05,
    split: str = "train",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    sharpness: Mapping[str, Any] | None = None,
) -> Verdict:
    """Judge two minima from the losses along the straight line and, where given, a fitted curve between them.

    A path is a profile (``along(..., samples=True)``), per-sample losses of shape (points, samples), or mean losses of
    shape (points,), which have no confidence interval. ``control`` is the line from the first minimum to an unrelated
    one, ``control_curve`` a curve fitted between those. ``tolerance`` is in nats above the higher end:

    - one basin: the upper bound of the line's barrier is within the tolerance;
    - joined by a curve only: the line's lower bound is above it, the curve's upper bound within;
    - separate: the lower bounds of the line and, where there is one, of the curve are above it;
    - undecided: an interval contains the tolerance, an end has an infinite loss, or an end is hardly better than
      guessing (known for profiles). Such an end is not a minimum: barriers are measured from the higher end, so a line
      to it is always flat.

    >>> hill = np.outer([0.0, 1.0, 0.0], np.ones(50))
    >>> str(verdict(hill).kind), str(verdict(0.01 * hill).kind)
    ('separate', 'one basin')
    """
    _check(tolerance, level, resamples)
    given = {"line": line, "curve": curve, "control": control, "control curve": control_curve}
    losses = {name: _losses(path, split, name) for name, path in given.items() if path is not None}
    if control_curve is not None and control is None:
        raise ValueError("control_curve is given without control, the straight line to the same minimum")
    barriers, notes = _barriers(losses, level, resamples, seed)
    means = _means(losses["line"])
    names = (str(between[0]), str(between[1]))
    guessing = _guessing_loss(line, split)
    ends = {names[0]: float(means[0]), names[1]: float(means[-1])}
    if control is not None:
        ends[control_name] = float(_means(losses["control"])[-1])
    guessing_networks = {name: loss for name, loss in ends.items() if is_guessing(loss, guessing, tolerance)}
    if not (math.isfinite(means[0]) and math.isfinite(means[-1])):
        notes.append("the loss at an end of the line is infinite: there is no minimum to compare with")
        kind = VerdictKind.UNDECIDED
    elif not guessing_networks.keys().isdisjoint(names):
        kind = VerdictKind.UNDECIDED
    else:
        kind = _kind(barriers["line"], barriers.get("curve"), tolerance)
    paths = {name: path for name, path in (("line", line), ("curve", curve)) if path is not None}
    found = Verdict(
        kind=kind,
        between=names,
        line=barriers["line"],
        trend=_trend(means, tolerance),
        curve=barriers.get("curve"),
        curve_name=curve_name,
        control=None if control is None else Control(control_name, barriers["control"], barriers.get("control curve")),
        tolerance=tolerance,
        split=split,
        level=level,
        resamples=resamples,
        guessing=guessing,
        guessing_networks=guessing_networks,
        test_error={name: spread for name, path in paths.items() if (spread := _test_error(path)) is not None},
        sharpness={
            name: values.to_json() if hasattr(values, "to_json") else dict(values)
            for name, values in (sharpness or {}).items()
        },
        notes=tuple(notes),
    )
    return replace(found, notes=(*notes, *(guessing_note(found, name) for name in guessing_networks)))


def _kind(line: Barrier, curve: Barrier | None, tolerance: float) -> VerdictKind:
    if line.surely_within(tolerance):
        return VerdictKind.ONE_BASIN
    if not line.surely_above(tolerance):
        return VerdictKind.UNDECIDED
    if curve is None or curve.surely_above(tolerance):
        return VerdictKind.SEPARATE
    return VerdictKind.JOINED_BY_A_CURVE_ONLY if curve.surely_within(tolerance) else VerdictKind.UNDECIDED


def _barriers(
    losses: Mapping[str, Floats], level: float, resamples: int, seed: int
) -> tuple[dict[str, Barrier], list[str]]:
    """The barrier of every path, with an interval if there are per-sample losses, and notes."""
    sampled = {name: values for name, values in losses.items() if values.ndim == 2}
    found = {name: Barrier(barrier(values)) for name, values in losses.items() if values.ndim == 1}
    if sampled:
        estimates = bootstrap_barriers(list(sampled.values()), level=level, resamples=resamples, seed=seed)
        found |= dict(zip(sampled, estimates, strict=True))
    notes = [
        f"{name}: no per-sample losses were kept, so its barrier has no confidence interval"
        for name, values in losses.items()
        if values.ndim == 1
    ]
    notes += [
        f"{name}: the loss overflows on the way, its barrier is infinite"
        for name, estimate in found.items()
        if math.isinf(estimate.value)
    ]
    return found, notes


def _losses(path: Any, split: str, name: str) -> Floats:
    """Per-sample losses (points, samples) of a path, else its mean losses (points,)."""
    splits = getattr(path, "splits", None)
    if splits is not None:
        if split not in splits:
            raise ValueError(f"{name} has no split {split!r}; it has {', '.join(map(repr, splits))}")
        samples = getattr(splits[split], "samples", None)
        path = splits[split].loss if samples is None else samples
    values = np.asarray(path)
    if values.ndim not in (1, 2) or values.shape[0] < 2 or values.size == 0:
        raise ValueError(
            f"{name} has losses of shape {values.shape}; give (points,) or (points, samples) with two or more points"
        )
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64)
    if np.isnan(values).any() or np.isneginf(values).any():
        raise ValueError(f"{name} has losses that are NaN or -inf; a loss that overflows is inf")
    return values


def _guessing_loss(path: Any, split: str) -> float | None:
    """The loss of guessing on the samples of a profile; None if unknown."""
    splits = getattr(path, "splits", None)
    known = None if splits is None else getattr(splits[split], "guessing", None)
    return None if known is None else float(known)


def _means(losses: Floats) -> NDArray[np.float64]:
    return np.asarray(losses if losses.ndim == 1 else losses.mean(axis=1, dtype=np.float64), dtype=np.float64)


def _trend(means: NDArray[np.float64], tolerance: float) -> Trend:
    """Steady: the ends differ by a tenth of the tolerance or more, and hardly any step goes the other way."""
    start, end = float(means[0]), float(means[-1])
    if not np.isfinite(means).all():
        return Trend(start, end, steady=False)
    rise = abs(end - start)
    against = (float(np.abs(np.diff(means)).sum()) - rise) / 2
    return Trend(start, end, steady=rise >= 0.1 * tolerance and against <= 0.05 * rise)


def _test_error(path: Any) -> Spread | None:
    splits = getattr(path, "splits", None)
    if splits is None or "test" not in splits:
        return None
    error = np.asarray(splits["test"].error, dtype=np.float64)
    return Spread(float(error.min()), float(error.max()), float(error.mean()))


def _barrier_json(estimate: Barrier) -> dict[str, float | None]:
    return {"barrier": estimate.value, "low": estimate.low, "high": estimate.high}


def _finite(value: Any) -> Any:
    """The value with None for every number that is not finite."""
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


def _check(tolerance: float, level: float, resamples: int) -> None:
    if not (math.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"tolerance is {tolerance}; give a finite number of nats above 0")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; give a confidence level between 0 and 1, such as 0.95")
    if resamples < 100:
        raise ValueError(f"resamples is {resamples}; an interval needs 100 or more")
