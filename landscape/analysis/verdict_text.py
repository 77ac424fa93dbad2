"""The text of a verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from valleyscope.landscape.analysis.alignment_text import alignment_sentence
from valleyscope.landscape.analysis.barriers import Barrier, Estimate

if TYPE_CHECKING:
    from valleyscope.landscape.analysis.verdict import Verdict

NEGLIGIBLE: Final = 1e-6
"""Nats that are rounding: losses are summed in float32."""


def sentence(verdict: Verdict) -> str:
    """The finding, the test error, the loss along the line, the curve and the control."""
    parts = [finding(verdict), _test_error(verdict), _trend(verdict), _curve(verdict), _control(verdict)]
    parts.append(_alignment(verdict))
    return " ".join(part for part in parts if part)


def finding(verdict: Verdict) -> str:
    """The kind and the numbers that decide it."""
    guessing_networks = [name for name in verdict.between if name in verdict.guessing_networks]
    if guessing_networks and math.isfinite(verdict.trend.start + verdict.trend.end):
        return " ".join(
            ["Undecided.", *(f"{guessing_note(verdict, name)}." for name in dict.fromkeys(guessing_networks))]
        )
    start, end = verdict.between
    along = f"Along the straight line from {start} to {end} the {verdict.split} loss"
    match verdict.kind.value:
        case "level valley":
            return f"Level valley. {along} stays within {_judged(verdict.line.rise, verdict)}{_contrast(verdict)}."
        case "one basin, sloping":
            rises = f"rises by {_judged(verdict.line.rise, verdict)} without a barrier{_contrast(verdict)}."
            return f"One basin, sloping. {along} {rises}"
        case "joined by a curve only":
            return (
                f"Joined by a curve only. {along} {_climb(verdict.line, verdict, limit=True)}; along the fitted curve "
                f"{verdict.curve_name!r} it {_climb(verdict.curve, verdict)}."
            )
        case "separate" if verdict.curve is None:
            return (
                f"Separate. {along} {_climb(verdict.line, verdict, limit=True)}. No curve was fitted, so whether a "
                "curved path joins them is open."
            )
        case "separate":
            return (
                f"Separate. {along} {_climb(verdict.line, verdict, limit=True)}; along the fitted curve "
                f"{verdict.curve_name!r} it {_climb(verdict.curve, verdict)}. A longer fit or more bends might still "
                "find a path."
            )
        case _:
            return f"Undecided. {_open_question(verdict, along)}"


def _open_question(verdict: Verdict, along: str) -> str:
    """What the numbers leave open."""
    start, end = verdict.between
    line, tolerance = verdict.line, verdict.tolerance
    if not math.isfinite(verdict.trend.start + verdict.trend.end):
        return f"{along} is infinite at an end."
    if line.surely_within(tolerance) and line.rise is None:
        return f"{start} and {end} lie in one basin; the profile is missing, so whether it is level is open."
    if line.surely_within(tolerance):
        return (
            f"{start} and {end} lie in one basin, but whether it is level is open: along the straight line the "
            f"{verdict.split} loss rises by {_judged(line.rise, verdict)}."
        )
    if not line.surely_above(tolerance):
        return f"{along} {_climb(line, verdict, limit=True)}: the interval contains the tolerance."
    return (
        f"{along} {_climb(line, verdict, limit=True)}; along the fitted curve {verdict.curve_name!r} it "
        f"{_climb(verdict.curve, verdict)}: that interval contains the tolerance."
    )


def guessing_note(verdict: Verdict, name: str) -> str:
    """The note on a network that is hardly better than guessing."""
    loss, guessing = verdict.guessing_networks[name], verdict.guessing
    assert guessing is not None
    better = "no" if loss >= guessing else "hardly"
    found = f"{name} has a {verdict.split} loss of {_number(loss)}, {better} better than guessing ({_number(guessing)})"
    so = "a flat line says nothing" if name in verdict.between else "it is not a valid control"
    return f"{found}: it is not a minimum, so {so}"


def _contrast(verdict: Verdict) -> str:
    """The rise of the control's line, if the control is a minimum behind a barrier."""
    control = verdict.control
    if control is None or control.line.rise is None or control.name in verdict.guessing_networks:
        return ""
    if not control.line.surely_above(verdict.tolerance):
        return ""
    line = "the control's line" if control.name == "control" else f"the line to {control.name}, the control,"
    if math.isinf(control.line.rise.value):
        return f"; {line} overflows"
    return f"; {line} rises by {_number(control.line.rise.value)}"


def _trend(verdict: Verdict) -> str:
    """How the loss changes from one end to the other."""
    trend = verdict.trend
    if not math.isfinite(trend.start + trend.end):
        return ""
    names = verdict.between if trend.start <= trend.end else verdict.between[::-1]
    low, high = sorted((trend.start, trend.end))
    if trend.steady:
        return f"The loss rises steadily from {_number(low)} at {names[0]} to {_number(high)} at {names[1]}."
    ends = f"The loss is {_number(low)} at {names[0]} and {_number(high)} at {names[1]}"
    if low - trend.lowest > verdict.tolerance:
        return f"{ends}; between them it falls to {_number(trend.lowest)}."
    return f"{ends}." if high - low > verdict.tolerance else ""


def _curve(verdict: Verdict) -> str:
    if verdict.curve is None:
        return ""
    found = f"The fitted curve {verdict.curve_name!r} {_climb(verdict.curve, verdict)}"
    match verdict.kind.value:
        case "level valley" | "one basin, sloping":
            return f"{found}; it is not needed for this finding, since even unrelated minima are usually joined by one."
        case "joined by a curve only":
            return "A curve is weak evidence: unrelated minima are usually joined by one, too."
        case "undecided" if not verdict.line.surely_above(verdict.tolerance):
            return f"{found}."
        case _:
            return ""


def _control(verdict: Verdict) -> str:
    control = verdict.control
    if control is None:
        return (
            "No control was measured: a minimum from another initialisation would show whether a barrier is to be "
            "expected at all between basins of this network."
        )
    first, tolerance = verdict.between[0], verdict.tolerance
    if control.name in verdict.guessing_networks:
        return f"{guessing_note(verdict, control.name)}."
    if control.line.surely_within(tolerance):
        return (
            f"The line to {control.name} has no barrier either ({_numbers(control.line, verdict)}): {control.name} "
            "lies in the same basin, so this picture cannot tell basins apart."
        )
    if not control.line.surely_above(tolerance):
        return (
            f"The line to {control.name} has a barrier of {_numbers(control.line, verdict)}, which the tolerance does "
            "not decide either, so the comparison says little."
        )
    text = f"For comparison, from {first} to {control.name} the line has a barrier of {_numbers(control.line, verdict)}"
    if control.curve is None:
        return text + "."
    if control.curve.surely_within(tolerance):
        return (
            f"{text} and a fitted curve one of {_numbers(control.curve, verdict)}: a flat curve alone does not tell "
            "one basin from two, the line does."
        )
    return f"{text} and a fitted curve one of {_numbers(control.curve, verdict)}."


def _alignment(verdict: Verdict) -> str:
    """Whether hidden units were aligned, and both barriers."""
    return alignment_sentence(
        verdict.aligned,
        kind=verdict.kind.value,
        between=verdict.between,
        line=verdict.line,
        tolerance=verdict.tolerance,
        number=lambda found: _numbers(found, verdict),
    )


def _test_error(verdict: Verdict) -> str:
    """The range of the error along the line, and whether it is level by its own tolerance."""
    spread, judged = verdict.test_error.get("line"), verdict.test_error_verdict
    if spread is None:
        return ""
    span = f"{100 * spread.min:.1f} to {100 * spread.max:.1f} %"
    if judged is None or judged.line.rise is None:
        return f"Test error along the line: {span}."
    rise = judged.line.rise
    inside = f"; tolerance {_points(judged.tolerance)}"
    level = "" if verdict.level is None else f"{100 * verdict.level:g} % "
    if rise.low is not None and rise.high is not None:
        interval = "none" if rise.low == rise.high else f"{100 * rise.low:.1f} to {100 * rise.high:.1f}"
        inside = f"{level}interval {interval}{inside}"
    size = f"{_points(rise.value)} ({inside.removeprefix('; ')})"
    if rise.surely_within(judged.tolerance):
        return f"Test error along the line stays within {size}: {span}."
    return f"Test error along the line changes by {size}: {span}."


def _points(fraction: float) -> str:
    """A difference of error rates in points of a per cent."""
    number = f"{100 * fraction:.1f}".removesuffix(".0")
    return f"{number} {'point' if number == '1' else 'points'}"


def _climb(barrier: Barrier | None, verdict: Verdict, *, limit: bool = False) -> str:
    """How far a path goes above its higher end."""
    assert barrier is not None
    tolerance = f" (tolerance {_tolerance(verdict)})" if limit else ""
    if math.isinf(barrier.value):
        return f"overflows{tolerance}"
    if _is_none(barrier, verdict):
        return f"has no barrier{tolerance}"
    size = _judged(barrier, verdict) if limit else _numbers(barrier, verdict)
    if barrier.value < _negligible(verdict):  # and what may be above is in the interval
        return f"has no barrier{size[size.index(' (') :]}"
    return f"rises {size} above its higher end"


def _judged(estimate: Estimate | None, verdict: Verdict) -> str:
    """A number with its unit, interval and the tolerance."""
    assert estimate is not None
    interval = _interval(estimate, verdict)
    tolerance = f"tolerance {_tolerance(verdict)}"
    value = 0.0 if abs(estimate.value) < _negligible(verdict) else estimate.value
    return f"{_number(value)}{_unit(verdict)} ({f'{interval}; ' if interval else ''}{tolerance})"


def _numbers(estimate: Estimate, verdict: Verdict) -> str:
    """A number with its unit and interval; "none" where both are zero."""
    if _is_none(estimate, verdict):
        return "none"
    interval = _interval(estimate, verdict)
    return f"{_number(estimate.value)}{_unit(verdict)}" + (f" ({interval})" if interval else "")


def _unit(verdict: Verdict) -> str:
    return f" {verdict.unit}" if verdict.unit else ""


def _tolerance(verdict: Verdict) -> str:
    return f"{verdict.tolerance:g}" if verdict.unit == "nats" else f"{verdict.tolerance:.3g}"


def _negligible(verdict: Verdict) -> float:
    """What is rounding: losses with a unit of their own have any scale, which the tolerance knows."""
    return NEGLIGIBLE if verdict.unit == "nats" else 2e-5 * verdict.tolerance


def _is_none(estimate: Estimate, verdict: Verdict) -> bool:
    """No barrier or rise, and no doubt about it."""
    return max(estimate.value, estimate.high or 0.0) < _negligible(verdict)


def _interval(estimate: Estimate, verdict: Verdict) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    level = "" if verdict.level is None else f"{100 * verdict.level:g} % "
    if estimate.high - estimate.low < _negligible(verdict):
        return f"{level}interval none"
    return f"{level}interval {_number(estimate.low)} to {_number(estimate.high)}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "infinity"
    if value == 0:
        return "0"
    if abs(value) < 0.0005:
        return f"{value:.1g}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"
