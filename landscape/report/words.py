"""Numbers and words for people, safe in HTML."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from html import escape
from typing import Any, Final

MISSING: Final = "\N{EN DASH}"


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


GLOSSARY: Final = (
    (
        "minimum",
        "One trained network. <b>sgd</b> is plain stochastic gradient descent, <b>altsdp</b> prunes whole groups of "
        "weights while it trains, <b>control</b> is sgd from another initialisation.",
    ),
    (
        "barrier",
        "The highest loss along a path minus the loss at the higher of its two ends. Zero: it never rises above them.",
    ),
    (
        "one basin",
        "The straight line between the two minima is flat: its barrier stays below the tolerance, with confidence.",
    ),
    (
        "joined by a curve only",
        "The straight line crosses a ridge, a fitted curve goes around it. Unrelated minima are joined by such curves, "
        "too, so this alone is no evidence of a common basin; compare with the control.",
    ),
    ("separate", "Neither the line nor the fitted curve stays below the tolerance."),
    (
        "undecided",
        "The confidence interval of the barrier contains the tolerance: more data would be needed. Or one of the two "
        "networks is hardly better than guessing, so it is no minimum and a flat line says nothing.",
    ),
    (
        "plane",
        "Two directions in the space of all weights. Axes are distances in that space, with the same unit on both. "
        "Points that lie off the plane are projected onto it and drawn hollow.",
    ),
    (
        "sparsity",
        "The share of parameters that are exactly zero. <b>Zero groups</b> counts whole filters, rows or kernels.",
    ),
)
