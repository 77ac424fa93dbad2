"""Numbers and words for people, safe in HTML."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from html import escape
from typing import Any, Final

MISSING: Final = "\N{EN DASH}"
NEGLIGIBLE: Final = 1e-6
"""Nats that are rounding: an interval that is not wider has no width."""


def loss(value: float | None) -> str:
    """A loss with three significant digits; what is zero to the eye has three decimals.

    >>> loss(0.47), loss(0.0), loss(0.00061), loss(123.4), loss(math.inf)
    ('0.470', '0.000', '0.000610', '123', '∞')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞"
    if abs(value) < 5e-7:
        return "0.000"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def barrier(value: float | None) -> str:
    """A barrier in nats, to the thousandth.

    >>> barrier(0.92), barrier(0.0004)
    ('0.920', '0.000')
    """
    return loss(value) if value is None or not math.isfinite(value) else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """The bounds of a barrier or rise; "none" without width, nothing where they are unknown.

    >>> interval(0.052, 0.091), interval(0.0, 0.0), interval(0.0311, 0.0313), interval(None, None)
    ('0.052 to 0.091', 'none', '0.0311 to 0.0313', '')
    """
    if low is None or high is None:
        return ""
    if high - low < NEGLIGIBLE or low == high:  # also both infinite
        return "none"
    ends = [barrier(low), barrier(high)]
    return " to ".join(ends if ends[0] != ends[1] else [loss(low), loss(high)])


def percent(value: float | None) -> str:
    """A share in percent with one decimal.

    >>> percent(0.98611)
    '98.6 %'
    """
    return MISSING if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def moment(iso: str) -> str:
    """A time stamp for people, to the minute.

    >>> moment("2026-02-03T10:12:33+00:00")
    '2026-02-03 10:12 UTC'
    """
    try:
        stamp = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    zone = "UTC" if stamp.utcoffset() == timedelta(0) else stamp.strftime("%z")
    return f"{stamp:%Y-%m-%d %H:%M} {zone}".strip()


def text(value: Any) -> str:
    """Any value as text that HTML shows as it is."""
    return escape(str(value))
