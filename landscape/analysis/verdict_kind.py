"""The kinds of verdict, and how barrier, rise and tolerance decide between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from valleyscope.landscape.analysis.barriers import Barrier


class VerdictKind(StrEnum):
    """The result at a given tolerance."""

    LEVEL_VALLEY = "level valley"
    ONE_BASIN_SLOPING = "one basin, sloping"
    JOINED_BY_A_CURVE_ONLY = "joined by a curve only"
    SEPARATE = "separate"
    UNDECIDED = "undecided"


TONES: Final[Mapping[VerdictKind, str]] = {
    VerdictKind.LEVEL_VALLEY: "good",
    VerdictKind.ONE_BASIN_SLOPING: "warn",
    VerdictKind.JOINED_BY_A_CURVE_ONLY: "warn",
    VerdictKind.SEPARATE: "bad",
    VerdictKind.UNDECIDED: "soft",
}
"""Only a level valley is good news."""


def kind_of(line: Barrier, curve: Barrier | None, tolerance: float) -> VerdictKind:
    """The verdict that the straight line and, where there is one, the fitted curve give.

    A bound decides where there is an interval, else the value:

    - level valley: the line's barrier and its rise are surely within the tolerance;
    - one basin, sloping: its barrier is surely within, its rise surely above;
    - joined by a curve only: its barrier is surely above, the curve's surely within;
    - separate: both are surely above, or the line's is and there is no curve;
    - undecided: an interval contains the tolerance, or the rise is unknown.
    """
    if line.surely_within(tolerance):
        return _level_or_sloping(line, tolerance)
    if not line.surely_above(tolerance):
        return VerdictKind.UNDECIDED
    if curve is None or curve.surely_above(tolerance):
        return VerdictKind.SEPARATE
    return VerdictKind.JOINED_BY_A_CURVE_ONLY if curve.surely_within(tolerance) else VerdictKind.UNDECIDED


def _level_or_sloping(line: Barrier, tolerance: float) -> VerdictKind:
    if line.rise is not None and line.rise.surely_within(tolerance):
        return VerdictKind.LEVEL_VALLEY
    if line.rise is not None and line.rise.surely_above(tolerance):
        return VerdictKind.ONE_BASIN_SLOPING
    return VerdictKind.UNDECIDED
