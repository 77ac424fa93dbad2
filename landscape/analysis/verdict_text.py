"""The text of a verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from valleyscope.landscape.analysis.barriers import Barrier

if TYPE_CHECKING:
    from valleyscope.landscape.analysis.verdict import Verdict


def sentence(verdict: Verdict) -> str:
    """The finding, the loss along the line, the curve, the control and the test error."""
    parts = [finding(verdict), _trend(verdict), _curve(verdict), _control(verdict), _test_error(verdict)]
    return " ".join(part for part in parts if part)


def finding(verdict: Verdict) -> str:
    """The verdict with its first number."""
    first, second = verdict.between
    on_the_line = f"on the straight line between them the {verdict.split} loss {_rise(verdict.line, verdict)}"
    limit = f"the tolerance is {verdict.tolerance:g} nats"
    guessing_networks = [name for name in verdict.between if name in verdict.guessing_networks]
    if guessing_networks and math.isfinite(verdict.trend.start + verdict.trend.end):
        found = ". ".join(guessing_note(verdict, name) for name in dict.fromkeys(guessing_networks))
        return f"{first} and {second}: undecided. {found}."
    match verdict.kind.value:
        case "one basin":
            return f"{first} and {second} lie in one basin: {on_the_line}; {limit}."
        case "joined by a curve only":
            return (
                f"{first} and {second} are joined by a curve only: {on_the_line}, while on the fitted curve "
                f"{verdict.curve_name!r} it {_rise(verdict.curve, verdict)}; {limit}."
            )
        case "separate" if verdict.curve is None:
            return (
                f"{first} and {second} are separate on the straight line: {on_the_line}; {limit}. No curve was fitted, "
                "so whether a curved path joins them is open."
            )
        case "separate":
            return (
                f"{first} and {second} are separate: {on_the_line}, and on the fitted curve {verdict.curve_name!r} it "
                f"{_rise(verdict.curve, verdict)}; {limit}. A longer fit or more bends might still find a path."
            )
        case _:
            return f"{first} and {second}: undecided. {on_the_line[0].upper()}{on_the_line[1:]}; {limit}."


def guessing_note(verdict: Verdict, name: str) -> str:
    """The note on a network that is hardly better than guessing."""
    loss, guessing = verdict.guessing_networks[name], verdict.guessing
    assert guessing is not None
    better = "no" if loss >= guessing else "hardly"
    found = f"{name} has a {verdict.split} loss of {_number(loss)}, {better} better than guessing ({_number(guessing)})"
    so = "a flat line says nothing" if name in verdict.between else "it is not a valid control"
    return f"{found}: it is not a minimum, so {so}"


def _trend(verdict: Verdict) -> str:
    """How the loss changes from one end to the other."""
    trend = verdict.trend
    names = verdict.between if trend.start <= trend.end else verdict.between[::-1]
    low, high = sorted((trend.start, trend.end))
    uneven = high - low > verdict.tolerance
    if not trend.steady:
        return f"Its ends differ: {_number(low)} at {names[0]}, {_number(high)} at {names[1]}." if uneven else ""
    text = (
        f"No barrier, but not constant: along the line the loss rises steadily from {_number(low)} at {names[0]} to "
        f"{_number(high)} at {names[1]}"
    )
    return text + (", more than the tolerance: one slope rather than a level valley." if uneven else ".")


def _curve(verdict: Verdict) -> str:
    if verdict.curve is None:
        return ""
    match verdict.kind.value:
        case "one basin":
            found = f"The fitted curve {verdict.curve_name!r} {_rise(verdict.curve, verdict)}"
            return f"{found}; it is not needed for this finding, since even unrelated minima are usually joined by one."
        case "joined by a curve only":
            return "That is weak evidence: unrelated minima are usually joined by such a curve, too."
        case "undecided":
            return f"The fitted curve {verdict.curve_name!r} {_rise(verdict.curve, verdict)}."
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
            f"The line to {control.name} is flat as well ({_numbers(control.line, verdict)}): {control.name} lies in "
            "the same basin, so this picture cannot tell basins apart."
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


def _test_error(verdict: Verdict) -> str:
    spread = verdict.test_error.get("line")
    if spread is None:
        return ""
    return f"Test error along the line: {100 * spread.min:.1f} to {100 * spread.max:.1f} %."


def _rise(barrier: Barrier | None, verdict: Verdict) -> str:
    assert barrier is not None
    if math.isinf(barrier.value):
        return "overflows"
    if barrier.value == 0 and not barrier.high:
        return "does not rise above its higher end"
    return f"rises {_numbers(barrier, verdict)} above its higher end"


def _numbers(barrier: Barrier, verdict: Verdict) -> str:
    """A barrier with its interval, in nats."""
    value = _number(barrier.value)
    if barrier.low is None or barrier.high is None:
        return f"{value} nats"
    return f"{value} nats ({100 * verdict.level:g} % interval {_number(barrier.low)} to {_number(barrier.high)})"


def _number(value: float) -> str:
    if math.isinf(value):
        return "infinity"
    if value == 0:
        return "0"
    if abs(value) < 0.0005:
        return f"{value:.1g}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"
