"""The verdict: do two minima share a level valley or a sloping basin, are they joined by a curve only, or separate?

The straight line between them, compared with the line to a control minimum, tells one basin from two, and its rise a
level valley from a slope. A flat curve proves little: unrelated minima are joined by one, too (Garipov et al. 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from valleyscope.landscape.analysis.alignment_text import AlignedLine
from valleyscope.landscape.analysis.barriers import Barrier, Estimate, barrier, bootstrap_barriers, measured_barrier
from valleyscope.landscape.analysis.path_values import Floats, errors_of, guessing_loss_of, losses_of, means, unit_of
from valleyscope.landscape.analysis.verdict_kind import VerdictKind, kind_of
from valleyscope.landscape.analysis.verdict_text import finding, guessing_note, sentence
from valleyscope.landscape.evaluation.guessing_baseline import is_guessing

__all__ = [
    "Barrier",
    "Control",
    "ErrorVerdict",
    "Estimate",
    "Spread",
    "Trend",
    "Verdict",
    "VerdictKind",
    "barrier",
    "verdict",
]


DEFAULT_TOLERANCE = 0.05


@dataclass(frozen=True)
class Spread:
    """Smallest, largest and mean value along a path."""

    min: float
    max: float
    mean: float


@dataclass(frozen=True)
class Trend:
    """The loss at both ends of a path, its lowest value, and whether it rises steadily from one end to the other."""

    start: float
    end: float
    steady: bool
    lowest: float


@dataclass(frozen=True)
class Control:
    """Barriers and rises to an unrelated minimum, for comparison."""

    name: str
    line: Barrier
    curve: Barrier | None = None


@dataclass(frozen=True)
class ErrorVerdict:
    """The same judgement by the share of wrong predictions; barriers, rises, ends and tolerance are fractions."""

    kind: VerdictKind
    line: Barrier
    curve: Barrier | None = None
    control: Control | None = None
    tolerance: float = 0.01
    split: str = "test"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": str(self.kind),
            "split": self.split,
            "tolerance": self.tolerance,
            "line": barrier_json(self.line),
            "curve": None if self.curve is None else barrier_json(self.curve),
            "control": _control_json(self.control),
        }


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
    level: float | None = 0.95
    """Confidence of the intervals; None where they are bounds of another kind."""
    resamples: int = 1000
    guessing: float | None = None
    guessing_networks: Mapping[str, float] = field(default_factory=dict)
    test_error: Mapping[str, Spread] = field(default_factory=dict)
    test_error_verdict: ErrorVerdict | None = None
    sharpness: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unit: str = "nats"
    """The unit of losses and tolerance; empty for a loss with a unit of its own."""
    aligned: AlignedLine | None = None
    """The line to the second network with its hidden units in the order of the first, where that was measured."""

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
            "line": barrier_json(self.line),
            "curve": None if self.curve is None else {"name": self.curve_name, **barrier_json(self.curve)},
            "control": _control_json(self.control),
            "sharpness": {name: dict(values) for name, values in self.sharpness.items()},
            "test_error": {path: asdict(spread) for path, spread in self.test_error.items()},
            "test_error_verdict": None if self.test_error_verdict is None else self.test_error_verdict.to_json(),
            "level": self.level,
            "bootstrap": self.resamples,
            "notes": list(self.notes),
            **({} if self.unit == "nats" else {"unit": self.unit}),
        }
        if self.aligned is not None:
            line = None if self.aligned.line is None else barrier_json(self.aligned.line)
            content["alignment"] = self.aligned.to_json(self.tolerance, line)
        return {name: finite_json(value) for name, value in content.items()}


def verdict(
    line: Any,
    curve: Any = None,
    control: Any = None,
    control_curve: Any = None,
    *,
    between: tuple[str, str] = ("start", "end"),
    curve_name: str = "curve",
    control_name: str = "control",
    tolerance: float | None = None,
    error_tolerance: float = 0.01,
    split: str = "train",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    sharpness: Mapping[str, Any] | None = None,
    aligned: Any = None,
    alignment: str = "weights",
    alignment_note: str = "",
) -> Verdict:
    """Judge two minima from the losses along the straight line and, where given, a fitted curve between them.

    A path is a profile (``along(..., samples=True)``), per-sample losses of shape (points, samples), or mean losses of
    shape (points,), which have no confidence interval. ``control`` is the line from the first minimum to an unrelated
    one, ``control_curve`` a curve fitted between those. The barrier of a path is its highest loss minus that of its
    higher end, its rise the highest minus the lowest loss. ``tolerance`` is in the unit of the loss; by default it is
    0.05 nats, or for losses with another unit 5 % of the loss at the higher end of the line:

    - level valley: the upper bounds of the line's barrier and rise are within the tolerance;
    - one basin, sloping: the upper bound of its barrier is within, the lower bound of its rise above;
    - joined by a curve only: the lower bound of the line's barrier is above it, the curve's upper bound within;
    - separate: the lower bounds of the barriers of the line and, where there is one, of the curve are above it;
    - undecided: an interval contains the tolerance, an end has an infinite loss, or an end is hardly better than
      guessing (known for profiles). Such an end is not a minimum: barriers are measured from the higher end, so a line
      to it has none.

    ``aligned`` is the line to the second network with its hidden units in the order of the first (see ``align``), found
    by the method ``alignment``; ``alignment_note`` says what was done or, alone, why it was refused. None of it changes
    the kind: the sentence has both barriers, and says "one basin up to permutation" where the upper bound of the
    aligned line's barrier is within the tolerance.

    The error on the split ``test`` of profiles is judged in the same way, with ``error_tolerance``, a fraction.

    >>> hill, slope = np.outer([0.0, 1.0, 0.0], np.ones(50)), np.outer([0.0, 0.5, 1.0], np.ones(50))
    >>> [str(verdict(path).kind) for path in (hill, slope, 0.01 * hill)]
    ['separate', 'one basin, sloping', 'level valley']
    """
    _check(tolerance, error_tolerance, level, resamples)
    given = {"line": line, "curve": curve, "control": control, "control curve": control_curve, "aligned": aligned}
    given = {name: path for name, path in given.items() if path is not None}
    losses = {name: losses_of(path, split, name) for name, path in given.items()}
    if control_curve is not None and control is None:
        raise ValueError("control_curve is given without control, the straight line to the same minimum")
    barriers = _barriers(losses, level, resamples, seed)
    notes = [*_interval_notes(losses), *_overflow_notes(barriers)]
    profile = means(losses["line"])
    unit = unit_of(line, split)
    if tolerance is None:
        tolerance, note = _default_tolerance(profile, unit)
        notes += note
    names = (str(between[0]), str(between[1]))
    guessing = guessing_loss_of(line, split)
    ends = {names[0]: float(profile[0]), names[1]: float(profile[-1])}
    if control is not None:
        ends[control_name] = float(means(losses["control"])[-1])
    guessing_networks = {name: loss for name, loss in ends.items() if is_guessing(loss, guessing, tolerance)}
    finite = math.isfinite(profile[0]) and math.isfinite(profile[-1])
    if not finite:
        notes.append("the loss at an end of the line is infinite: there is no minimum to compare with")
    are_minima = finite and guessing_networks.keys().isdisjoint(names)
    kind = kind_of(barriers["line"], barriers.get("curve"), tolerance) if are_minima else VerdictKind.UNDECIDED
    errors = {name: values for name, path in given.items() if (values := errors_of(path, "test", name)) is not None}
    error_barriers = _barriers(errors, level, resamples, seed)
    error_kind = (
        kind_of(error_barriers["line"], error_barriers.get("curve"), error_tolerance)
        if are_minima and "line" in error_barriers
        else VerdictKind.UNDECIDED
    )
    found = Verdict(
        kind=kind,
        between=names,
        line=barriers["line"],
        trend=_trend(profile, tolerance),
        curve=barriers.get("curve"),
        curve_name=curve_name,
        control=_control(control_name, barriers),
        tolerance=tolerance,
        split=split,
        level=level,
        resamples=resamples,
        guessing=guessing,
        guessing_networks=guessing_networks,
        test_error={name: _spread(errors[name]) for name in ("line", "curve") if name in errors},
        test_error_verdict=None
        if "line" not in errors
        else ErrorVerdict(
            error_kind,
            error_barriers["line"],
            error_barriers.get("curve"),
            _control(control_name, error_barriers),
            error_tolerance,
        ),
        sharpness={
            name: values.to_json() if hasattr(values, "to_json") else dict(values)
            for name, values in (sharpness or {}).items()
        },
        notes=tuple(notes),
        unit=unit,
        aligned=AlignedLine(alignment, barriers.get("aligned"), alignment_note, are_minima)
        if "aligned" in barriers or alignment_note
        else None,
    )
    return replace(found, notes=(*notes, *(guessing_note(found, name) for name in guessing_networks)))


def _barriers(values: Mapping[str, Floats], level: float, resamples: int, seed: int) -> dict[str, Barrier]:
    """The barrier, rise and ends of every path, with intervals where there are per-sample values."""
    sampled = {name: path for name, path in values.items() if path.ndim == 2}
    found = {name: measured_barrier(path) for name, path in values.items() if path.ndim == 1}
    if sampled:
        estimates = bootstrap_barriers(list(sampled.values()), level=level, resamples=resamples, seed=seed)
        found |= dict(zip(sampled, estimates, strict=True))
    return found


def _control(name: str, barriers: Mapping[str, Barrier]) -> Control | None:
    return Control(name, barriers["control"], barriers.get("control curve")) if "control" in barriers else None


def _interval_notes(losses: Mapping[str, Floats]) -> list[str]:
    return [
        f"{name}: no per-sample losses were kept, so its barrier and rise have no confidence interval"
        for name, values in losses.items()
        if values.ndim == 1
    ]


def _overflow_notes(barriers: Mapping[str, Barrier]) -> list[str]:
    return [
        f"{name}: the loss overflows on the way, its barrier is infinite"
        for name, estimate in barriers.items()
        if math.isinf(estimate.value)
    ]


def _trend(profile: NDArray[np.float64], tolerance: float) -> Trend:
    """Steady: the ends differ by a tenth of the tolerance or more, and hardly any step goes the other way."""
    start, end, lowest = float(profile[0]), float(profile[-1]), float(profile.min())
    if not np.isfinite(profile).all():
        return Trend(start, end, steady=False, lowest=lowest)
    rise = abs(end - start)
    against = (float(np.abs(np.diff(profile)).sum()) - rise) / 2
    return Trend(start, end, steady=rise >= 0.1 * tolerance and against <= 0.05 * rise, lowest=lowest)


def _spread(errors: Floats) -> Spread:
    error = means(errors)
    return Spread(float(error.min()), float(error.max()), float(error.mean()))


def _control_json(control: Control | None) -> dict[str, Any] | None:
    if control is None:
        return None
    curve = None if control.curve is None else barrier_json(control.curve)
    return {"name": control.name, "line": barrier_json(control.line), "curve": curve}


def barrier_json(found: Barrier) -> dict[str, Any]:
    return {
        "barrier": found.value,
        "low": found.low,
        "high": found.high,
        "rise": None if found.rise is None else asdict(found.rise),
        "ends": None if found.ends is None else asdict(found.ends),
    }


def finite_json(value: Any) -> Any:
    """The value with None for every number that is not finite."""
    if isinstance(value, Mapping):
        return {name: finite_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(inner) for inner in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


def _default_tolerance(profile: NDArray[np.float64], unit: str) -> tuple[float, list[str]]:
    """0.05 nats, or a share of the higher end for a loss with its own unit; with a note on the latter."""
    higher = float(np.abs(profile[[0, -1]]).max())
    if unit == "nats" or not 0 < higher < math.inf:
        return DEFAULT_TOLERANCE, []
    return DEFAULT_TOLERANCE * higher, [
        f"tolerance: {100 * DEFAULT_TOLERANCE:g} % of the loss at the higher end, since this loss has its own unit"
    ]


def _check(tolerance: float | None, error_tolerance: float, level: float, resamples: int) -> None:
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"tolerance is {tolerance}; give a finite number of nats above 0")
    if not 0 < error_tolerance < 1:
        raise ValueError(f"error_tolerance is {error_tolerance}; give a fraction between 0 and 1, such as 0.01")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; give a confidence level between 0 and 1, such as 0.95")
    if resamples < 100:
        raise ValueError(f"resamples is {resamples}; an interval needs 100 or more")
